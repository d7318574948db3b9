//! A web server on loopback.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use support::python::PYTHON;
use support::waiting::{Process, until};

pub struct Server {
    _child: Process,
    pub url: String,
}

impl Server {
    /// Serves a folder, which may be made later.
    pub fn of(folder: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut python = Command::new(PYTHON);
        python.args(["-m", "http.server", "--bind", "127.0.0.1", "--directory"]).arg(folder);
        python.arg(port.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        let server =
            Self { _child: Process::start(&mut python), url: format!("http://127.0.0.1:{port}") };
        until("the web server answers", || TcpStream::connect(("127.0.0.1", port)).ok());
        server
    }
}
