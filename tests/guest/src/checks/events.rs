//! Asynchronous events: links that go down and come up, GIDs that come and go.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use directverbs_linux::objects::{AddressHandle, Context, Element, EventKind};
use directverbs_linux::sysfs::{LinkError, PortState, check_link};
use directverbs_linux::uverbs::{Fd, Uhw};
use rustix::event::epoll;

use super::rxe::to_itself;
use super::{context, pd, port, says};
use crate::check::Check;
use crate::machine::network::{self, FAR, NEAR};
use crate::machine::wait_for;

pub fn checks() -> Vec<Check> {
    vec![
        Check::of(no_event_is_none_after_the_time_given),
        Check::of(a_link_that_goes_down_and_comes_up_is_told),
        Check::of(a_cable_that_is_pulled_is_told),
        Check::of(a_gid_that_comes_is_told),
        Check::of(every_context_is_told),
    ]
}

/// How long an event may take.
const SOON: Option<Duration> = Some(Duration::from_secs(10));

/// Waits for an event of this kind; others may come before it.
pub fn event(context: &Context, kind: EventKind) -> Element {
    loop {
        let event = context.next_event(SOON).expect("an open device").expect("an event");
        if event.kind == kind {
            return event.element;
        }
    }
}

/// Whether epoll says, within `milliseconds`, that a file can be read.
pub fn readable(fd: Fd, milliseconds: u32) -> bool {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll");
    // SAFETY: the file belongs to an object that outlives this function.
    let file = unsafe { BorrowedFd::borrow_raw(fd.get()) };
    epoll::add(&poll, file, epoll::EventData::new_u64(7), epoll::EventFlags::IN).expect("a file to wait for");
    let mut events = Vec::with_capacity(2);
    let timeout = Duration::from_millis(milliseconds.into()).try_into().expect("a short time");
    let count =
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)).expect("epoll");
    count == 1 && events[0].data.u64() == 7
}

fn no_event_is_none_after_the_time_given() {
    let context = context();
    assert_eq!(context.next_event(Some(Duration::ZERO)).expect("an open device"), None);
    assert_eq!(context.next_event(Some(Duration::from_millis(20))).expect("an open device"), None);
    assert!(!readable(context.event_fd(), 0));
}

fn a_link_that_goes_down_and_comes_up_is_told() {
    let context = context();
    network::set_up(NEAR, false);
    assert!(readable(context.event_fd(), 10_000));
    assert_eq!(event(&context, EventKind::PORT_ERROR), Element::Port(1));
    let (told, asked) = (port(), context.query_port(1).expect("a port"));
    assert_eq!((told.state, asked.state), (PortState::Down, PortState::Down));
    let error = check_link(&told, None).expect_err("it is down");
    assert!(matches!(error, LinkError::Down { port: 1, state: PortState::Down, .. }), "{error}");
    says(&error.to_string(), &["port 1 is down", "ip link set"]);
    network::set_up(NEAR, true);
    assert_eq!(event(&context, EventKind::PORT_ACTIVE), Element::Port(1));
    wait_for("the link", || (port().state == PortState::Active).then_some(()));
    assert_eq!(context.query_port(1).expect("a port").state, PortState::Active);
    restore();
}

/// An interface that was down has lost its IPv6 addresses.
fn restore() {
    if !port().gids.iter().any(|entry| entry.gid == super::discovery::gid(super::V6)) {
        network::set_address(NEAR, super::V6, 64, true);
    }
    wait_for("the GIDs", || (port().gids.len() >= 3).then_some(()));
}

fn a_cable_that_is_pulled_is_told() {
    let context = context();
    network::set_up(FAR, false);
    assert_eq!(event(&context, EventKind::PORT_ERROR), Element::Port(1));
    assert_eq!(context.query_port(1).expect("a port").state, PortState::Down);
    let error = check_link(&port(), None).expect_err("the link is down").to_string();
    says(&error, &["port 1 is down", NEAR, "look at the cable"]);
    // The addresses are still there, so handles can be made.
    AddressHandle::create(&pd(), &to_itself(), 1, Uhw::none()).expect("an address handle");
    network::set_up(FAR, true);
    assert_eq!(event(&context, EventKind::PORT_ACTIVE), Element::Port(1));
    wait_for("the link", || (port().state == PortState::Active).then_some(()));
}

fn a_gid_that_comes_is_told() {
    let context = context();
    let address = IpAddr::V4(Ipv4Addr::new(10, 99, 8, 8));
    for there in [true, false] {
        network::set_address(NEAR, address, 24, there);
        assert_eq!(event(&context, EventKind::GID_CHANGE), Element::Port(1));
    }
}

fn every_context_is_told() {
    let contexts = [context(), context()];
    network::set_up(FAR, false);
    for context in &contexts {
        event(context, EventKind::PORT_ERROR);
    }
    network::set_up(FAR, true);
    for context in &contexts {
        event(context, EventKind::PORT_ACTIVE);
    }
    wait_for("the link", || (port().state == PortState::Active).then_some(()));
}
