//! How messages go over gRPC: as prost encodes them. One that cannot be read is an invalid argument, not a fault of the
//! server.

use std::marker::PhantomData;

use longhaul_protocol::{A2aError, ErrorCode};
use prost::Message;
use tonic::Status;
use tonic::codec::{DecodeBuf, Decoder};
use tonic_prost::{ProstCodec, ProstEncoder};

use crate::json_value::JSON_DEPTH_MAX;

/// The codec of the generated services and clients.
#[derive(Debug)]
pub struct Codec<T, U> {
    of: PhantomData<(T, U)>,
}

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self { of: PhantomData }
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = Reader<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::default().encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        Reader { of: PhantomData }
    }
}

/// Reads messages.
#[derive(Debug)]
pub struct Reader<U> {
    of: PhantomData<U>,
}

impl<U: Message + Default> Decoder for Reader<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        U::decode(bytes).map(Some).map_err(|_| {
            let message = format!(
                "the message is not of the type that the method takes; data and metadata may have {JSON_DEPTH_MAX} levels"
            );
            crate::status::encode(&A2aError::new(ErrorCode::InvalidArgument, message))
        })
    }
}
