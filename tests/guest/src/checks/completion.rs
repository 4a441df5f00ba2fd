//! Completion channels: events of completion queues, through a file that epoll takes.

use std::time::Duration;

use directverbs::verbs::QpType;
use directverbs_linux::objects::{CompletionChannel, CqInit};

use super::events::readable;
use super::{context, pd, rxe};
use crate::check::Check;

pub fn checks() -> Vec<Check> {
    vec![
        Check::of(a_channel_without_events_is_not_readable),
        Check::of(queues_share_a_channel_and_hold_it),
        Check::of(a_queue_without_a_channel_can_be_armed),
    ]
}

fn a_channel_without_events_is_not_readable() {
    let channel = CompletionChannel::create(&context()).expect("a channel");
    assert!(!readable(channel.fd(), 0));
    assert_eq!(channel.next(Some(Duration::ZERO)).expect("an open device"), None);
    assert_eq!(channel.next(Some(Duration::from_millis(20))).expect("an open device"), None);
}

fn queues_share_a_channel_and_hold_it() {
    let pd = pd();
    let context = pd.context();
    let channel = CompletionChannel::create(&context).expect("a channel");
    let init = || CqInit { channel: Some(&channel), ..CqInit::default() };
    let (one, _) = rxe::cq(&context, init()).expect("a completion queue");
    let (two, _) = rxe::cq(&context, init()).expect("a completion queue");
    assert_ne!(one.user_handle(), two.user_handle());
    for cq in [&one, &two] {
        cq.request_notification(false).expect("armed");
    }
    assert_eq!(channel.next(Some(Duration::ZERO)).expect("an open device"), None, "nothing has completed");
    drop(channel);
    let (qp, _) = rxe::qp(&pd, QpType::Rc, &one, None).expect("a queue pair");
    qp.destroy().expect("nothing refers to it");
    one.destroy().expect("nothing refers to it");
    two.destroy().expect("nothing refers to it");
}

fn a_queue_without_a_channel_can_be_armed() {
    let (cq, _) = rxe::cq(&context(), CqInit::default()).expect("a completion queue");
    cq.request_notification(true).expect("armed");
    cq.request_notification(false).expect("armed");
}
