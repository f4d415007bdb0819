//! `stint-sim`: the server of a stand-in node, and the commands about it that `stint sim` runs.
//!
//! Exit codes: 0 done, 1 failed, 64 wrong arguments, 69 no node, 77 not permitted, 78 bad faults file.

mod faults;
mod settings;
mod show;
mod units;

use clap::{Args, Parser, Subcommand};
use settings::Settings;
use simgpu::catalogue::Product;
use simgpu::client::{ConnectError, Observer, Place, start};
use simgpu::facts::NodeFacts;
use simgpu::server::{Config, Place as ServerPlace, Server};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Parser)]
#[command(
    name = "stint-sim",
    version,
    about = "The stand-in GPU node: a server that CUDA programs share"
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Start a node that stays until it is stopped
    Start {
        #[command(flatten)]
        at: At,
        /// End it when nobody has been connected for so long (host time)
        #[arg(long, value_name = "DURATION", value_parser = units::duration)]
        linger: Option<u64>,
        #[command(flatten)]
        settings: Settings,
        /// Print what was started as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the node's own truth: memory, busy time and launches of every process, dead ones too
    Status {
        #[command(flatten)]
        at: At,
        /// Print `stint.sim/v1`
        #[arg(long)]
        json: bool,
    },
    /// End the node, whoever uses it
    Stop {
        #[command(flatten)]
        at: At,
    },
    /// Whether a node, where one runs, has these devices
    #[command(hide = true)]
    Compare {
        #[arg(long)]
        socket: PathBuf,
        #[arg(long, value_name = "LIST")]
        devices: String,
    },
    /// Be the server, in the foreground
    #[command(hide = true)]
    Serve {
        /// Its socket
        #[arg(long)]
        socket: PathBuf,
        /// Stay when nobody is connected
        #[arg(long)]
        stay: bool,
        /// Host time for which it stays otherwise
        #[arg(long, default_value = "10s", value_parser = units::duration)]
        linger: u64,
        #[command(flatten)]
        settings: Settings,
    },
}

#[derive(Args)]
struct At {
    /// Run directory of the node [default: $STINT_RUN_DIR, else the installed node's, else your own]
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
}

impl At {
    fn socket(&self) -> PathBuf {
        let dir = self.run_dir.clone().unwrap_or_else(driver::run_dir::of_sim);
        std::path::absolute(dir.join(driver::run_dir::SIM_SOCKET)).unwrap_or(dir)
    }
}

/// What went wrong, for stderr, and the exit code.
struct Failure {
    code: u8,
    text: String,
}

fn failure(code: u8, text: impl Into<String>) -> Failure {
    Failure {
        code,
        text: text.into(),
    }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are errors to clap, too.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(64)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let done = match cli.verb {
        Verb::Start {
            at,
            linger,
            settings,
            json,
        } => start_node(&at, linger, &settings, json),
        Verb::Status { at, json } => status(&at, json),
        Verb::Stop { at } => stop(&at),
        Verb::Compare { socket, devices } => compare(&socket, &devices),
        Verb::Serve {
            socket,
            stay,
            linger,
            settings,
        } => serve(&socket, (!stay).then_some(linger), &settings),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("stint-sim: {}", failure.text);
            ExitCode::from(failure.code)
        }
    }
}

fn serve(socket: &std::path::Path, linger_ns: Option<u64>, settings: &Settings) -> Result<(), Failure> {
    let (facts, losses) = settings.node()?;
    let socket = std::path::absolute(socket).map_err(|e| failure(64, e.to_string()))?;
    // SAFETY: no other thread runs yet; directories and socket get exactly the modes they ask for.
    unsafe { libc::umask(0) };
    let _ = std::env::set_current_dir("/");
    let place = match ServerPlace::take(&socket) {
        Ok(place) => place,
        // Another one was faster: whoever started this one finds that.
        Err(error) if error.kind() == ErrorKind::AddrInUse => return Ok(()),
        Err(error) => return Err(failure(1, format!("{}: {error}", socket.display()))),
    };
    let config = Config {
        facts,
        sharing: settings.sharing(),
        losses,
        linger_ns,
    };
    let served = Server::new(place, config).and_then(|mut server| server.run());
    served.map_err(|error| failure(1, error.to_string()))
}

fn start_node(at: &At, linger: Option<u64>, settings: &Settings, json: bool) -> Result<(), Failure> {
    // Every mistake is reported here: the server has nowhere to print to.
    settings.node()?;
    let socket = at.socket();
    let place = Place {
        socket: socket.clone(),
        server: None,
    };
    if Observer::connect(&place).is_ok() {
        let text = format!(
            "a node is running at {}; end it with `stint sim stop` first",
            socket.display()
        );
        return Err(failure(1, text));
    }
    let program = std::env::current_exe().map_err(|e| failure(1, e.to_string()))?;
    let mut arguments: Vec<OsString> = ["serve", "--socket"].map(OsString::from).into();
    arguments.push(socket.clone().into_os_string());
    arguments.push(linger.map_or("--stay".into(), |ns| format!("--linger={ns}ns").into()));
    arguments.extend(settings.to_arguments());
    let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    start(&program, &arguments).map_err(|e| failure(1, format!("{}: {e}", program.display())))?;
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match Observer::connect(&place) {
            Ok(observer) if json => return show::json(&observer),
            Ok(observer) => {
                for (i, device) in observer.devices().iter().enumerate() {
                    println!("device {i}: {}, {}", device.name.as_str(), device.uuid_text());
                }
                println!("stand-in node at {}", socket.display());
                return Ok(());
            }
            Err(error) if Instant::now() > deadline => return Err(unreachable(error, &socket)),
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

fn compare(socket: &std::path::Path, wanted: &str) -> Result<(), Failure> {
    let products = Product::parse_list(wanted).map_err(|e| failure(64, format!("--devices: {e}")))?;
    let wanted = NodeFacts::of(&products, 0, 0);
    let place = Place {
        socket: socket.to_owned(),
        server: None,
    };
    let observer = match Observer::connect(&place) {
        Ok(observer) => observer,
        Err(ConnectError::NoNode(error)) if error.kind() != ErrorKind::PermissionDenied => return Ok(()),
        Err(error) => return Err(unreachable(error, socket)),
    };
    let (there, wanted) = (
        Product::list_of(observer.devices()),
        Product::list_of(wanted.devices()),
    );
    if there == wanted {
        return Ok(());
    }
    Err(failure(
        1,
        format!(
            "a stand-in node with {there} runs at {}, not one with {wanted}: leave `--devices` out, or end that one \
             with `stint sim stop` first",
            socket.display()
        ),
    ))
}

fn status(at: &At, json: bool) -> Result<(), Failure> {
    let socket = at.socket();
    let place = Place {
        socket: socket.clone(),
        server: None,
    };
    let observer = Observer::connect(&place).map_err(|error| unreachable(error, &socket))?;
    if json {
        show::json(&observer)
    } else {
        show::table(&observer)
    }
}

fn stop(at: &At) -> Result<(), Failure> {
    let socket = at.socket();
    let place = Place {
        socket: socket.clone(),
        server: None,
    };
    let observer = match Observer::connect(&place) {
        Ok(observer) => observer,
        // Already so.
        Err(ConnectError::NoNode(error)) if error.kind() != ErrorKind::PermissionDenied => return Ok(()),
        Err(error) => return Err(unreachable(error, &socket)),
    };
    observer.stop().map_err(|_| {
        failure(
            77,
            format!(
                "the node at {} is another user's: only that one and root may end it",
                socket.display()
            ),
        )
    })
}

fn unreachable(error: ConnectError, socket: &std::path::Path) -> Failure {
    let closed = driver::run_dir::closed_part(socket);
    let socket = socket.display();
    match error {
        ConnectError::NoNode(error) if error.kind() == ErrorKind::PermissionDenied => failure(
            77,
            format!(
                "the stand-in node at {socket} cannot be reached: permission denied by {}",
                closed.display()
            ),
        ),
        ConnectError::NoNode(error) => failure(
            69,
            format!("no stand-in node at {socket}: {error}; start one with `stint sim start`"),
        ),
        ConnectError::Version => failure(69, format!("the node at {socket} is of another version")),
        ConnectError::Untrusted => failure(
            77,
            format!("the directory of {socket} belongs to somebody else or others may write to it"),
        ),
    }
}
