//! Answers that a client has to refuse.

use std::time::Duration;

use serde_json::json;

use super::agent::{TASK_ID, is_rpc, item, reply, result, task};
use super::{Asked, Script, Step, floods};

/// What goes wrong with the one answer of a call. Each is a clear error at the client, in bounded time and memory; none is
/// ever taken for a result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CallFault {
    /// The id of JSON-RPC is not that of the request. In HTTP+JSON the task is not the one that was asked for.
    WrongRpcId,
    /// A task, but not the one that was asked for.
    WrongTaskId,
    /// Both a result and an error.
    ResultAndError,
    /// Neither a result nor an error.
    NoResult,
    /// An object that is none of the protocol's.
    OtherShape,
    /// One string of 1 GB.
    HugeBody,
    /// The same in chunks, without a length.
    HugeChunkedBody,
    /// Headers without end.
    HugeHead,
    /// 10,000 arrays in each other.
    DeepNesting,
    /// A byte that no UTF-8 has.
    InvalidUtf8,
    /// Text that is no JSON.
    NotJson,
    /// A body that ends within its JSON, whole as HTTP.
    HalfJson,
    /// Status 200 and no bytes.
    EmptyBody,
    /// `null`.
    NullBody,
    /// Status 204 where a result was due.
    NoContent,
    /// Nothing, and the connection stays open.
    NeverAnswers,
    /// The head of an answer, and nothing more.
    StallsAfterHead,
    /// Half of an answer, and nothing more.
    StallsInBody,
    /// The connection is closed before the answer.
    ClosesAtOnce,
    /// It is reset.
    Resets,
    /// It is closed within the head.
    ClosesInHead,
    /// It is closed within the body.
    ClosesInBody,
    /// More bytes are promised than come.
    LengthTooLong,
    /// Fewer bytes are promised than the JSON has.
    LengthTooShort,
    /// A chunk without a size.
    BadChunk,
    /// No HTTP at all.
    NotHttp,
    /// A redirect to itself.
    RedirectLoop,
    /// A redirect to the cloud's metadata service.
    RedirectInside,
    /// What a proxy says when nobody is behind it.
    HtmlBadGateway,
    /// A page for people, with status 200.
    HtmlOk,
    /// 401, and how to sign in.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 429, and when to come again.
    TooManyRequests,
    /// 503, and when to come again.
    Unavailable,
}

impl CallFault {
    /// All of them.
    #[rustfmt::skip]
    pub const ALL: &[Self] = &[
        Self::WrongRpcId, Self::WrongTaskId, Self::ResultAndError, Self::NoResult, Self::OtherShape, Self::HugeBody,
        Self::HugeChunkedBody, Self::HugeHead, Self::DeepNesting, Self::InvalidUtf8, Self::NotJson, Self::HalfJson,
        Self::EmptyBody, Self::NullBody, Self::NoContent, Self::NeverAnswers, Self::StallsAfterHead, Self::StallsInBody,
        Self::ClosesAtOnce, Self::Resets, Self::ClosesInHead, Self::ClosesInBody, Self::LengthTooLong,
        Self::LengthTooShort, Self::BadChunk, Self::NotHttp, Self::RedirectLoop, Self::RedirectInside,
        Self::HtmlBadGateway, Self::HtmlOk, Self::Unauthorized, Self::Forbidden, Self::TooManyRequests,
        Self::Unavailable,
    ];

    /// Whether only the client's own deadline ends it.
    #[must_use]
    pub fn hangs(self) -> bool {
        matches!(self, Self::NeverAnswers | Self::StallsAfterHead | Self::StallsInBody)
    }

    /// The answer, of which this is wrong and nothing else: the task of these scripts, completed, to a send, a get or a cancel.
    #[must_use]
    pub fn script(self, asked: &Asked) -> Script {
        let good = || reply(asked, &result(asked, "TASK_STATE_COMPLETED"));
        let ok = |body: &[u8]| Script::whole(200, &[("Content-Type", "application/json")], body);
        match self {
            Self::WrongRpcId | Self::WrongTaskId => self.wrong_id(asked),
            Self::ResultAndError | Self::NoResult | Self::OtherShape => self.wrong_shape(asked),
            Self::HugeBody => floods::huge_json(),
            Self::HugeChunkedBody => floods::huge_json_in_chunks(),
            Self::HugeHead => floods::huge_head(),
            Self::DeepNesting => ok(floods::nested().as_bytes()),
            Self::InvalidUtf8 => ok(&[&br#"{"result":""#[..], &[0xff], br#""}"#].concat()),
            Self::NotJson => ok(b"All is well!"),
            Self::HalfJson => ok(br#"{"jsonrpc":"2.0","id":1,"result":{"task":{"#),
            Self::EmptyBody => ok(b""),
            Self::NullBody => ok(b"null"),
            Self::NoContent => Script::head(204, &[]),
            Self::NeverAnswers => Script::new().then(Step::Stall),
            Self::StallsAfterHead => {
                Script::head(200, &[("Content-Type", "application/json"), ("Content-Length", "100")]).then(Step::Stall)
            }
            Self::StallsInBody => {
                Script::head(200, &[("Content-Length", "100")]).write(r#"{"jsonrpc":"2.0","#).then(Step::Stall)
            }
            Self::ClosesAtOnce => Script::new().then(Step::Close),
            Self::Resets => Script::new().then(Step::Reset),
            Self::ClosesInHead => good().cut_after(20),
            Self::ClosesInBody => good().cut_after(140),
            Self::LengthTooLong | Self::LengthTooShort | Self::BadChunk | Self::NotHttp => self.wrong_framing(asked),
            Self::RedirectLoop | Self::RedirectInside => self.redirect(asked),
            Self::HtmlBadGateway => html(502),
            Self::HtmlOk => html(200),
            Self::Unauthorized => Script::whole(401, &[("WWW-Authenticate", r#"Bearer realm="agents""#)], ""),
            Self::Forbidden => Script::whole(403, &[], ""),
            Self::TooManyRequests => Script::whole(429, &[("Retry-After", "7")], ""),
            Self::Unavailable => Script::whole(503, &[("Retry-After", "7")], ""),
        }
    }

    fn wrong_id(self, asked: &Asked) -> Script {
        let mut result = result(asked, "TASK_STATE_COMPLETED");
        if self == Self::WrongRpcId && is_rpc(asked) {
            return Script::json(200, &json!({"jsonrpc": "2.0", "id": "another", "result": result}));
        }
        let task = if result.get("task").is_some() { &mut result["task"] } else { &mut result };
        task["id"] = "another-task".into();
        reply(asked, &result)
    }

    fn wrong_shape(self, asked: &Asked) -> Script {
        let result = result(asked, "TASK_STATE_COMPLETED");
        let error = json!({"code": -32001, "message": "both"});
        let id = asked.rpc_id();
        match self {
            Self::ResultAndError if is_rpc(asked) => {
                Script::json(200, &json!({"jsonrpc": "2.0", "id": id, "result": result, "error": error}))
            }
            Self::NoResult if is_rpc(asked) => Script::json(200, &json!({"jsonrpc": "2.0", "id": id})),
            _ => reply(asked, &json!({"weather": "fine"})),
        }
    }

    fn wrong_framing(self, asked: &Asked) -> Script {
        let body = item(asked, &result(asked, "TASK_STATE_COMPLETED")).to_string();
        let head = |length: usize| Script::head(200, &[("Content-Length", &length.to_string())]);
        match self {
            Self::LengthTooLong => head(body.len() + 10).write(body).then(Step::Close),
            Self::LengthTooShort => head(body.len() - 10).write(body).then(Step::Close),
            Self::BadChunk => {
                Script::head(200, &[("Transfer-Encoding", "chunked")]).write("zz\r\nabc\r\n").then(Step::Close)
            }
            _ => Script::new().write("220 mail.example.com ESMTP\r\n").then(Step::Close),
        }
    }

    fn redirect(self, asked: &Asked) -> Script {
        let to = match self {
            Self::RedirectLoop => asked.target.as_str(),
            _ => "http://169.254.169.254/latest/meta-data/",
        };
        Script::whole(307, &[("Location", to)], "")
    }
}

fn html(status: u16) -> Script {
    let page = "<html><body><h1>nginx</h1></body></html>";
    Script::whole(status, &[("Content-Type", "text/html")], page)
}

/// What goes wrong with a stream, after its first event: the task, submitted. Each is an error at the client, or a reason to
/// open the stream again, in bounded time and memory; none is ever taken for the task's end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StreamFault {
    /// A line of 1 GB.
    EndlessLine,
    /// An event of 1 GB in short lines.
    EndlessEvent,
    /// A comment of 1 GB.
    EndlessComment,
    /// A byte that no UTF-8 has.
    InvalidUtf8,
    /// An event whose data is no JSON.
    NotJson,
    /// 10,000 arrays in each other.
    DeepNesting,
    /// An event of another request; in HTTP+JSON of another task.
    WrongRpcId,
    /// An event of another task.
    WrongTaskId,
    /// An orderly end, before the task's.
    EndsEarly,
    /// The connection is closed within an event.
    ClosesInEvent,
    /// It is reset between two events.
    Resets,
    /// Nothing more comes.
    Stalls,
    /// Nothing but comments comes, for ever.
    OnlyComments,
    /// A chunk without a size.
    BadChunk,
}

impl StreamFault {
    /// All of them.
    #[rustfmt::skip]
    pub const ALL: &[Self] = &[
        Self::EndlessLine, Self::EndlessEvent, Self::EndlessComment, Self::InvalidUtf8, Self::NotJson,
        Self::DeepNesting, Self::WrongRpcId, Self::WrongTaskId, Self::EndsEarly, Self::ClosesInEvent, Self::Resets,
        Self::Stalls, Self::OnlyComments, Self::BadChunk,
    ];

    /// The stream.
    #[must_use]
    pub fn script(self, asked: &Asked) -> Script {
        let ended = |id: &str| {
            json!({"statusUpdate": {"taskId": id, "contextId": super::CONTEXT_ID,
            "status": {"state": "TASK_STATE_COMPLETED"}}})
        };
        let first = Script::events().event(&item(asked, &json!({"task": task("TASK_STATE_SUBMITTED")})));
        let endless = |flood: Script| flood.into_steps().into_iter().skip(1).fold(first.clone(), Script::then);
        match self {
            Self::EndlessLine => endless(floods::endless_line()),
            Self::EndlessEvent => endless(floods::endless_event()),
            Self::EndlessComment => endless(floods::endless_comment()),
            Self::InvalidUtf8 => first.chunk([&b"data: {\"a\":\""[..], &[0xff], b"\"}\n\n"].concat()).end(),
            Self::NotJson => first.chunk("data: All is well!\n\n").end(),
            Self::DeepNesting => first.chunk(format!("data: {}\n\n", floods::nested())).end(),
            Self::WrongRpcId if is_rpc(asked) => {
                first.event(&json!({"jsonrpc": "2.0", "id": "another", "result": ended(TASK_ID)})).end()
            }
            Self::WrongRpcId | Self::WrongTaskId => first.event(&item(asked, &ended("another-task"))).end(),
            Self::EndsEarly => first.end(),
            Self::ClosesInEvent => first.write("40\r\ndata: {\"sta").then(Step::Close),
            Self::Resets => first.then(Step::Reset),
            Self::Stalls => first.then(Step::Stall),
            Self::OnlyComments => {
                let beat =
                    |script: Script| script.chunk(": still here\n\n").then(Step::Pause(Duration::from_millis(20)));
                (0..BEATS).fold(first, |script, _| beat(script)).then(Step::Stall)
            }
            Self::BadChunk => first.write("zz\r\nabc\r\n").then(Step::Close),
        }
    }
}

/// How many comments are called for ever: 20 s of them.
const BEATS: u32 = 1000;
