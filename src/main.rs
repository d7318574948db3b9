//! The `rockpack` command.

fn main() -> std::process::ExitCode {
    rockpack::cli::run()
}
