//! The interfaces `wasi:sockets/*-create-socket` and `wasi:sockets/ip-name-lookup`: there, since
//! every Python component imports them, and refused. No socket of the system is ever opened.

use crate::state::{CallState, Denials};
use wasmtime::{
    bail,
    component::{HasData, Linker, Resource},
};
use wasmtime_wasi::p2::{
    DynPollable, Network, SocketError, SocketResult, TcpSocket, UdpSocket,
    bindings::sockets::{
        ip_name_lookup::{self, HostResolveAddressStream, ResolveAddressStream},
        network::{self, ErrorCode, IpAddress, IpAddressFamily},
        tcp_create_socket, udp_create_socket,
    },
};

const REASON: &str =
    "plugins get no sockets; they can send requests over HTTP, where a host is granted";

struct NoNetwork;

impl HasData for NoNetwork {
    type Data<'a> = NoNetworkView<'a>;
}

struct NoNetworkView<'a> {
    denials: &'a Denials,
}

pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    fn view(state: &mut CallState) -> NoNetworkView<'_> {
        NoNetworkView { denials: &state.denials }
    }
    tcp_create_socket::add_to_linker::<CallState, NoNetwork>(linker, view)?;
    udp_create_socket::add_to_linker::<CallState, NoNetwork>(linker, view)?;
    ip_name_lookup::add_to_linker::<CallState, NoNetwork>(linker, view)
}

impl NoNetworkView<'_> {
    fn refuse<T>(&self, operation: &str, target: &str) -> SocketResult<T> {
        self.denials.note(operation, target, REASON);
        Err(ErrorCode::AccessDenied.into())
    }
}

/// The interfaces above share their errors with this one, which stays the runtime's own.
impl network::Host for NoNetworkView<'_> {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn network_error_code(
        &mut self,
        _: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(None)
    }
}

impl network::HostNetwork for NoNetworkView<'_> {
    fn drop(&mut self, _: Resource<Network>) -> wasmtime::Result<()> {
        bail!("there is no network")
    }
}

impl tcp_create_socket::Host for NoNetworkView<'_> {
    fn create_tcp_socket(&mut self, _: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        self.refuse("open", "a TCP socket")
    }
}

impl udp_create_socket::Host for NoNetworkView<'_> {
    async fn create_udp_socket(&mut self, _: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        self.refuse("open", "a UDP socket")
    }
}

impl ip_name_lookup::Host for NoNetworkView<'_> {
    fn resolve_addresses(
        &mut self,
        _: Resource<Network>,
        name: String,
    ) -> SocketResult<Resource<ResolveAddressStream>> {
        self.refuse("look up", &name)
    }
}

/// Nobody has such a stream, since none is ever handed out.
impl HostResolveAddressStream for NoNetworkView<'_> {
    fn resolve_next_address(
        &mut self,
        _: Resource<ResolveAddressStream>,
    ) -> SocketResult<Option<IpAddress>> {
        Err(ErrorCode::InvalidState.into())
    }

    fn subscribe(
        &mut self,
        _: Resource<ResolveAddressStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        bail!("there is no stream of addresses")
    }

    fn drop(&mut self, _: Resource<ResolveAddressStream>) -> wasmtime::Result<()> {
        bail!("there is no stream of addresses")
    }
}
