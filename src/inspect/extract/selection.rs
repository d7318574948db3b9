//! The selection of code objects.

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::gfx::Target;
use rockpack_elf::code_object;

/// A selection of code objects; all by default.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Targets: code for any of them is selected. An arch without features selects all of its feature variants;
    /// features select every target that fixes them.
    pub targets: Vec<Target>,
    /// Names of kernels: code with any of them is selected.
    pub kernels: Vec<String>,
}

impl Selection {
    /// Whether everything is wanted.
    pub(super) fn is_everything(&self) -> bool {
        self.targets.is_empty() && self.kernels.is_empty()
    }

    /// Whether code for `target` is wanted, as far as its target decides.
    pub(super) fn has_target(&self, target: Option<&Target>) -> bool {
        self.targets.is_empty()
            || target.is_some_and(|target| self.targets.iter().any(|it| satisfies(target, it)))
    }

    /// Whether the code is wanted, as far as its kernels decide.
    pub(super) fn has_kernel(&self, content: &Content) -> Result<bool> {
        if self.kernels.is_empty() {
            return Ok(true);
        }
        if !code_object::is_code_object(content)? {
            return Ok(false);
        }
        let defined = code_object::kernel_names(content)?;
        Ok(self.kernels.iter().any(|kernel| defined.contains(kernel.as_str())))
    }
}

/// Whether `target` has the arch of `wanted`, and fixes every feature that `wanted` fixes.
fn satisfies(target: &Target, wanted: &Target) -> bool {
    let fixed = target.features();
    wanted.base() == target.base() && wanted.features().iter().all(|it| fixed.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arch_stands_for_its_variants_and_features_for_what_fixes_them() {
        assert!(selects("gfx90a", "gfx90a:sramecc+:xnack-"));
        assert!(selects("gfx90a:xnack-", "gfx90a:sramecc+:xnack-"));
        assert!(!selects("gfx90a:xnack+", "gfx90a:sramecc+:xnack-"));
        assert!(!selects("gfx90a:xnack+", "gfx90a"));
        assert!(!selects("gfx1100", "gfx1101"));
        assert!(
            !Selection { targets: vec!["gfx906".parse().unwrap()], ..Selection::default() }
                .has_target(None)
        );
        assert!(Selection::default().has_target(None));
    }

    fn selects(wanted: &str, target: &str) -> bool {
        let targets = vec![wanted.parse().unwrap()];
        let selection = Selection { targets, kernels: Vec::new() };
        selection.has_target(Some(&target.parse().unwrap()))
    }
}
