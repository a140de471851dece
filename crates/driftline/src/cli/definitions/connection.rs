//! `driftline connection`: named uses of connectors, with their settings.

mod history;
mod show;

use crate::catalog::kind_of;
use crate::cli::report_change;
use crate::place::Place;
use crate::verbs::administration::connections::flags::ConnectionFlags;
use crate::verbs::administration::connections::{
    ChangeConnection, ConnectionName, ConnectionRequest, ConnectionsRequest,
};
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;
use store::tables::connections::ConnectionKind;

/// Define connections: where documents come from and where they go
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline connection create copy --connector files --kind output directory=/srv/out
Example: driftline connection edit web --throttle '^www\\.example\\.com$=12/min,conns=2'")]
pub struct Args {
    #[command(subcommand)]
    action: ConnectionCommand,
}

#[derive(Subcommand)]
enum ConnectionCommand {
    /// List all connections
    #[command(after_help = "Example: driftline connection list --kind output")]
    List(ConnectionListArgs),
    /// Show a connection with its settings
    #[command(after_help = "Example: driftline connection show web")]
    Show(ConnectionOneArgs),
    /// Create a connection
    #[command(
        after_help = "Example: driftline connection create copy --connector files --kind output directory=/srv/out"
    )]
    Create(ConnectionCreateArgs),
    /// Change a connection; what is not given stays the same
    #[command(after_help = "\
Example: driftline connection edit web --throttle '^www\\.example\\.com$=12/min,conns=2,kb=100'")]
    Edit(ConnectionEditArgs),
    /// Delete a connection that no job and no other connection uses
    #[command(after_help = "Example: driftline connection delete copy")]
    Delete(ConnectionOneArgs),
    /// Check whether a connection can be used, and if not, say why
    #[command(after_help = "Example: driftline connection check copy")]
    Check(ConnectionOneArgs),
    /// Send every document to an output again, as the next runs process it
    ///
    /// For an output that has lost its documents. Nothing is fetched again for this.
    #[command(after_help = "Example: driftline connection reindex copy")]
    Reindex(ConnectionOneArgs),
    /// Forget which documents an output has, without contacting the output
    ///
    /// For an output that was emptied or is not to be cleaned up: removed documents are no longer
    /// deleted from it, and what the next runs process is added again.
    #[command(after_help = "Example: driftline connection forget copy")]
    Forget(ConnectionOneArgs),
    /// Delete the whole history of a repository connection
    ///
    /// Documents, queue and outputs stay as they are. Entries older than the connection's retention
    /// time are deleted automatically.
    #[command(after_help = "Example: driftline connection clear-history web")]
    ClearHistory(ConnectionOneArgs),
    /// Delete the settings of connections whose encryption key is lost
    ///
    /// Settings are stored encrypted. If the key is lost, they can no longer be read; afterwards
    /// the connections can be given new settings.
    #[command(after_help = "Example: driftline connection forget-sealed")]
    ForgetSealed(AllArgs),
}

#[derive(ClapArgs)]
struct AllArgs {
    #[command(flatten)]
    place: Place,
}

#[derive(ClapArgs)]
struct ConnectionListArgs {
    #[command(flatten)]
    place: Place,
    /// Only connections of this kind
    #[arg(long, value_name = "KIND", value_parser = kind_of)]
    kind: Option<ConnectionKind>,
}

#[derive(ClapArgs)]
struct ConnectionOneArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    one: ConnectionName,
}

#[derive(ClapArgs)]
struct ConnectionCreateArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    one: ConnectionName,
    /// Connector to use; `driftline connector list` lists them
    #[arg(long, value_name = "NAME")]
    connector: String,
    #[command(flatten)]
    flags: ConnectionFlags,
}

#[derive(ClapArgs)]
struct ConnectionEditArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    one: ConnectionName,
    /// The new name
    #[arg(long, value_name = "NAME")]
    rename: Option<String>,
    #[command(flatten)]
    flags: ConnectionFlags,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (place, request) = match args.action {
        ConnectionCommand::List(args) => {
            let kind = args.kind.map(|kind| kind.name().to_owned());
            let request = ConnectionsRequest { kind, ..ConnectionsRequest::default() };
            return show::list(&args.place, request);
        }
        ConnectionCommand::Show(args) => return show::show(&args.place, request_for(args.one)),
        ConnectionCommand::Check(args) => {
            let request = ConnectionsRequest { opens: true, ..request_for(args.one) };
            return show::check(&args.place, request);
        }
        ConnectionCommand::Create(ConnectionCreateArgs { place, one, connector, flags }) => {
            (place, ConnectionRequest::Create { one, connector, flags })
        }
        ConnectionCommand::Edit(ConnectionEditArgs { place, one, rename, flags }) => {
            (place, ConnectionRequest::Edit { one, rename, flags })
        }
        ConnectionCommand::Delete(ConnectionOneArgs { place, one }) => {
            (place, ConnectionRequest::Delete { one })
        }
        ConnectionCommand::Reindex(ConnectionOneArgs { place, one }) => {
            (place, ConnectionRequest::Reindex { one })
        }
        ConnectionCommand::Forget(ConnectionOneArgs { place, one }) => {
            (place, ConnectionRequest::Forget { one })
        }
        ConnectionCommand::ForgetSealed(AllArgs { place }) => {
            (place, ConnectionRequest::ForgetSealed {})
        }
        ConnectionCommand::ClearHistory(ConnectionOneArgs { place, one }) => {
            return history::clear(&place, one);
        }
    };
    let changed = place.change::<ChangeConnection>(request)?;
    report_change(&place, &changed, "nothing changed: it is already as requested")
}

fn request_for(one: ConnectionName) -> ConnectionsRequest {
    ConnectionsRequest { kind: one.kind, name: Some(one.name), opens: false }
}
