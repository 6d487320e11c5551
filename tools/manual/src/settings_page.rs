//! vgasnet(7), from the table of settings.

use crate::page::Page;
use vgasnet_settings::{Audience, variables};

/// The page.
pub fn text() -> String {
    let mut page = Page::new("vgasnet", 7, "settings of jobs whose segments are larger than memory");
    page.section("DESCRIPTION");
    page.paragraphs(
        "vgasnet gives every rank of a job a segment, which may be larger than memory. The segment lives in a file on the node's disk. \
         A pool in memory caches its pages. A page in any rank's pool comes from there instead of the disk.\n\n\
         Programs are written in C, C++, Fortran or Python with the interface of vgasnet(3), or for GASNet. vgasnetrun(1) starts them. \
         vgasnet-info(1) shows a machine's disks, memory and transports, and prerequisites it lacks.",
    );
    page.section("ENVIRONMENT");
    page.paragraphs(
        "vgasnetrun passes these variables to all ranks. A size is digits, optionally followed by K, M, G or T (powers of 1024). \
         A value outside the allowed ones is an error, and so is a misspelt name.",
    );
    list(&mut page, Audience::Users);
    page.section("CLIENTS OF GASNET");
    page.paragraphs(
        "Programs for GASNet and their launchers read these variables of GASNet. GASNet's other variables affect only a GASNet below \
         the conduit gasnet.",
    );
    list(&mut page, Audience::GasnetClients);
    page.section("MPI PROGRAMS");
    page.paragraphs(
        "libvgasnet-mpi-io and libvgasnet-mpi-cache are loaded before MPI, in unmodified programs. They read these variables.",
    );
    list(&mut page, Audience::MpiPrograms);
    page.documents();
    page.see_also(&["vgasnet(3)", "vgasnetrun(1)", "vgasnet-info(1)", "vgasnet-bench(1)"]);
    page.finish()
}

fn list(page: &mut Page, audience: Audience) {
    for variable in variables(audience) {
        page.item(variable.name, variable.meaning);
        page.below_item(&format!("allowed: {}", variable.allowed));
        page.below_item(&format!("default: {}", variable.default));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_there() {
        let text = text();
        for name in ["STORAGE_DIR", "POOL_SIZE", "STATS_FILE", "MPI_FILES", "MPI_CACHE_STATS"] {
            assert!(text.contains(&format!("\n.TP\n\\fBVGASNET_{name}\\fR\n")), "{name}");
        }
        for name in ["MAX_SEGSIZE", "CATCH_EXIT", "PSHM_NODES", "SSH_SERVERS", "VERBOSEENV"] {
            assert!(text.contains(&format!("\n.TP\n\\fBGASNET_{name}\\fR\n")), "{name}");
        }
        assert!(!text.contains("VGASNET_TEST") && !text.contains("VGASNET_AGENT"));
    }
}
