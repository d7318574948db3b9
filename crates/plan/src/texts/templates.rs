//! The templates of scripts, and how all templates are written.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, UndefinedBehavior};

/// The templates of scripts by name.
pub(super) const SCRIPTS: [(&str, &str); 15] = [
    ("alternatives-post", include_str!("../../../../templates/alternatives-post.sh")),
    ("alternatives-postinst", include_str!("../../../../templates/alternatives-postinst.sh")),
    ("alternatives-postrm", include_str!("../../../../templates/alternatives-postrm.sh")),
    ("alternatives-postun", include_str!("../../../../templates/alternatives-postun.sh")),
    ("alternatives-prerm", include_str!("../../../../templates/alternatives-prerm.sh")),
    ("debug-postinst", include_str!("../../../../templates/debug-postinst.sh")),
    ("debug-prerm", include_str!("../../../../templates/debug-prerm.sh")),
    ("folders-postun", include_str!("../../../../templates/folders-postun.sh")),
    ("guard", include_str!("../../../../templates/guard.sh")),
    ("kinds-postinst", include_str!("../../../../templates/kinds-postinst.sh")),
    ("kinds-postrm", include_str!("../../../../templates/kinds-postrm.sh")),
    ("kinds-preinst", include_str!("../../../../templates/kinds-preinst.sh")),
    ("kinds-pretrans", include_str!("../../../../templates/kinds-pretrans.lua")),
    ("loader-post", include_str!("../../../../templates/loader-post.sh")),
    ("loader-postun", include_str!("../../../../templates/loader-postun.sh")),
];

/// An environment without templates, in which a name that nobody gives is an error.
pub(super) fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()?;
    environment.set_syntax(syntax);
    Ok(environment)
}
