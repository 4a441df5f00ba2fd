use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use directverbs::verbs::Device;
use directverbs_softnic::open::{NicKind, Options, Visit, join};
use directverbs_workload::{Job, Op, Role, StreamJob};

use super::error::ExchangeError;
use super::link::{LONGEST, Link};
use super::message::Message;
use super::remote::Remote;
use crate::runner::{Runner, Stop};

const LIMIT: Duration = Duration::from_secs(20);

/// Two ends of a connection.
fn sockets() -> [TcpStream; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
    [to, listener.accept().expect("accepted").0]
}

/// A link, and the peer's end of it.
fn link(limit: Duration) -> (Link, TcpStream) {
    let [ours, theirs] = sockets();
    (Link::new(ours, limit).expect("a link"), theirs)
}

/// What is done at each end.
type Act = fn(&mut dyn Runner) -> Result<u64, Stop>;

/// Both ends, each on a thread of its own with its end of a connection.
struct Apart(Act, Act);

impl Visit for Apart {
    type Out = [Result<u64, String>; 2];

    fn run<A: Device + Send, B: Device + Send>(self, a: A, b: B) -> Self::Out {
        let [one, two] = sockets();
        let end = |stop: Stop| match stop {
            Stop::Job(error) => error.to_string(),
            Stop::Device(message) => message,
            Stop::Other(failure) => failure.to_string(),
        };
        thread::scope(|scope| {
            let first = scope.spawn(move || {
                let link = Link::new(one, LIMIT).map_err(|e| e.to_string())?;
                let mut remote = Remote::new(a, link, Role::First);
                (self.0)(&mut remote).map_err(end)
            });
            let second = scope.spawn(move || {
                let link = Link::new(two, LIMIT).map_err(|e| e.to_string())?;
                let mut remote = Remote::new(b, link, Role::Second);
                (self.1)(&mut remote).map_err(end)
            });
            [first.join().expect("no panic"), second.join().expect("no panic")]
        })
    }
}

fn apart(nics: [NicKind; 2], first: Act, second: Act) -> [Result<u64, String>; 2] {
    let options = Options { threaded: true, ..Options::default() };
    join(nics[0], nics[1], &options, Apart(first, second)).expect("it opens")
}

fn job(op: Op) -> Job {
    Job { op, size: 100, iterations: 40, batch: 2, ..Job::default() }
}

#[test]
fn two_ends_take_turns_and_both_know_what_was_verified() {
    let act: Act = |runner| {
        let mut bytes = 0;
        for op in [Op::Send, Op::Write, Op::Read, Op::SendInv] {
            bytes += runner.turns(&job(op), &mut |_| {})?;
        }
        Ok(bytes)
    };
    for nics in [[NicKind::BnxtReP7, NicKind::IonicV2], [NicKind::IonicV1, NicKind::IonicV1]] {
        assert_eq!(apart(nics, act, act), [Ok(4 * 2 * 40 * 2 * 100), Ok(4 * 2 * 40 * 2 * 100)]);
    }
}

#[test]
fn two_ends_stream_and_the_first_decides_how_long() {
    fn act(runner: &mut dyn Runner, job: &StreamJob) -> Result<u64, Stop> {
        let mut rounds = 0;
        loop {
            let report = runner.stream(job, &mut |_| {})?;
            assert_eq!(report.verified_bytes, 8 * 64);
            rounds += 1;
            if !runner.again(rounds < 3)? {
                return Ok(rounds);
            }
        }
    }
    let first: Act = |runner| act(runner, &stream_of(Op::Write, 100));
    let second: Act = |runner| act(runner, &stream_of(Op::Write, 1));
    assert_eq!(apart([NicKind::BnxtReP5, NicKind::BnxtReP7], first, second), [Ok(3), Ok(3)]);
}

fn stream_of(op: Op, messages: u64) -> StreamJob {
    StreamJob { op, size: 64, messages, depth: 8, batch: 2, signal_every: 3, ..StreamJob::default() }
}

#[test]
fn ends_that_do_not_want_the_same_are_told_what_differs() {
    let first: Act = |runner| runner.turns(&job(Op::Write), &mut |_| {});
    let second: Act = |runner| runner.turns(&Job { size: 4096, ..job(Op::Write) }, &mut |_| {});
    let [one, two] = apart([NicKind::BnxtReP7; 2], first, second);
    assert_eq!(
        one.unwrap_err(),
        "peer: --size is 4096 there and 100 here: give both ends the same arguments"
    );
    assert_eq!(
        two.unwrap_err(),
        "peer: --size is 100 there and 4096 here: give both ends the same arguments"
    );
}

#[test]
fn what_one_end_cannot_do_is_told_to_the_other() {
    let act: Act = |runner| runner.turns(&Job { srq: true, ..job(Op::Send) }, &mut |_| {});
    let [one, two] = apart([NicKind::BnxtReP7, NicKind::IonicV2], act, act);
    assert_eq!(one.unwrap_err(), "peer: ionic has no shared receive queue");
    assert_eq!(two.unwrap_err(), "ionic has no shared receive queue");
}

fn error_of(bytes: &[u8], limit: Duration) -> ExchangeError {
    let (mut link, mut peer) = link(limit);
    peer.write_all(bytes).expect("sent");
    peer.shutdown(std::net::Shutdown::Write).expect("shut down");
    link.receive("a job").expect_err("no message")
}

#[test]
fn hostile_bytes_are_errors_that_say_what_came() {
    assert!(matches!(
        error_of(b"GET / HTTP/1.1\r\n\r\n", LIMIT),
        ExchangeError::TooLong { given: 0x4745_5420, .. }
    ));
    assert!(matches!(error_of(&[0xff; 64], LIMIT), ExchangeError::TooLong { given: 0xffff_ffff, .. }));
    assert!(matches!(error_of(b"", LIMIT), ExchangeError::Closed { waiting: "a job" }));
    assert!(matches!(error_of(&[0, 0, 0, 9, b'{'], LIMIT), ExchangeError::Closed { .. }));
    let texts = [
        "",
        "{}",
        "[]",
        "nul",
        "\"ready",
        "{\"contact\":{\"qp\":1}}",
        "{\"done\":{\"verified_bytes\":-1}}",
        "{\"again\":2}",
        "{\"ready\":1}",
        "\u{0}\u{0}",
        "{\"directverbs\":{\"version\":1,\"wire\":\"soft\",\"more\":2}}",
    ];
    for text in texts {
        let bytes = [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
        assert!(matches!(error_of(&bytes, LIMIT), ExchangeError::Senseless { .. }), "{text}");
    }
    let nested = "[".repeat(LONGEST as usize);
    let bytes = [&LONGEST.to_be_bytes()[..], nested.as_bytes()].concat();
    assert!(matches!(error_of(&bytes, LIMIT), ExchangeError::Senseless { .. }));
}

#[test]
fn a_contact_out_of_range_is_refused() {
    use super::message::Reach;
    use directverbs_workload::Contact;
    let good = "{\"qp\":1,\"psn\":2,\"qkey\":3,\"gid\":[0,0,0,0,0,0,0,0,0,0,255,255,10,0,0,1],\"mac\":[2,0,0,0,0,1],\"mtu\":1024,\
                \"rd_atomic\":1,\"addr\":4096,\"stride\":64,\"rkey\":5,\"windows\":[WINDOWS]}";
    let good = good.replace("WINDOWS", &["7"; 32].join(","));
    let read = |text: &str| {
        let reach: Reach = serde_json::from_str(text).expect("its types are right");
        Contact::try_from(&reach)
    };
    let contact = read(&good).expect("a contact");
    assert_eq!(serde_json::to_string(&Reach::from(&contact)).expect("text"), good);
    for (part, wrong) in [
        ("\"qp\":1,", "\"qp\":16777216,"),
        ("\"psn\":2,", "\"psn\":4294967295,"),
        ("\"mtu\":1024,", "\"mtu\":1500,"),
        ("\"windows\":[7,", "\"windows\":["),
    ] {
        let error = read(&good.replace(part, wrong)).expect_err(wrong);
        assert!(matches!(error, ExchangeError::Senseless { waiting: "a contact", .. }), "{error}");
    }
}

#[test]
fn a_silent_peer_and_one_that_dribbles_are_not_waited_for() {
    let limit = Duration::from_millis(200);
    let (mut link, peer) = link(limit);
    let began = Instant::now();
    let error = link.receive("a contact").expect_err("silence");
    assert!(matches!(error, ExchangeError::TimedOut { waiting: "a contact", .. }), "{error}");
    drop(peer);

    let (mut link, mut peer) = self::link(limit);
    let dribble = thread::spawn(move || {
        let _ = peer.write_all(&100u32.to_be_bytes());
        while began.elapsed() < Duration::from_secs(10) && peer.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let began = Instant::now();
    let error = link.receive("a contact").expect_err("a dribble");
    assert!(matches!(error, ExchangeError::TimedOut { .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5));
    drop(link);
    dribble.join().expect("no panic");
}

#[test]
fn a_peer_that_fails_or_goes_is_noticed_without_waiting() {
    let (mut link, mut peer) = link(LIMIT);
    link.look("the end").expect("nothing came");
    let text = br#"{"done":{"verified_bytes":7}}"#;
    peer.write_all(&[&(text.len() as u32).to_be_bytes()[..], text].concat()).expect("sent");
    while link.early.is_none() {
        link.look("the end").expect("a message");
    }
    assert_eq!(link.receive("the end").expect("it is kept"), Message::Done { verified_bytes: 7 });
    let text = br#"{"failed":"queue pair 0x1:\u001bgone"}"#;
    peer.write_all(&[&(text.len() as u32).to_be_bytes()[..], text].concat()).expect("sent");
    let error = (0..1000).find_map(|_| {
        thread::sleep(Duration::from_millis(1));
        link.look("the end").err()
    });
    assert_eq!(error.expect("a failure").to_string(), "peer: queue pair 0x1: gone");
    drop(peer);
    let error = (0..1000).find_map(|_| {
        thread::sleep(Duration::from_millis(1));
        link.look("the end").err()
    });
    assert!(matches!(error, Some(ExchangeError::Closed { .. })));
}

#[test]
fn another_version_or_another_kind_of_wire_is_refused() {
    let greeted = |text: &str| {
        let (mut link, mut peer) = link(LIMIT);
        peer.write_all(&[&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()).expect("sent");
        link.greet("soft").map_err(|error| error.to_string())
    };
    assert_eq!(greeted(r#"{"directverbs":{"version":1,"wire":"soft"}}"#), Ok(()));
    assert_eq!(
        greeted(r#"{"directverbs":{"version":9,"wire":"soft"}}"#).unwrap_err(),
        "peer: version 9 of the exchange, here it is 1: use the same dv at both ends"
    );
    assert_eq!(
        greeted(r#"{"directverbs":{"version":1,"wire":"hard"}}"#).unwrap_err(),
        "peer: the wire is hard there and soft here: give both ends the same arguments"
    );
    assert_eq!(greeted("\"ready\"").unwrap_err(), "peer: a greeting expected, readiness came");
}
