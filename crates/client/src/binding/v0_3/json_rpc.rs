//! JSON-RPC of v0.3 (§7 and §8 of v0.3).

use longhaul_protocol::v0_3::{from_json, json_rpc, to_json};
use longhaul_protocol::wire;

use crate::binding::details::v0_3::from_json_rpc;
use crate::binding::said::RpcCall;
use crate::operation::Opening;
use crate::operation::v0_3::Forms;

pub(super) fn call<Q, R>(request: Q, forms: Forms<Q, R>) -> RpcCall<R> {
    RpcCall { method: forms.method, params: (forms.params)(request), result: forms.result, error: from_json_rpc }
}

pub(super) fn stream(opening: Opening) -> RpcCall<wire::StreamResponse> {
    let (method, params) = match opening {
        Opening::Send(request) => ("message/stream", to_json::<json_rpc::MessageSendParams, _>(*request)),
        Opening::Subscribe(request) => ("tasks/resubscribe", to_json::<json_rpc::TaskIdParams, _>(request)),
    };
    RpcCall { method, params, result: from_json::<json_rpc::Event, _>, error: from_json_rpc }
}
