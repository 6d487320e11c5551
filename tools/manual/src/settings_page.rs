//! vgasnet(7), from the table of settings.

use crate::page::Page;
use vgasnet_settings::{Audience, variables};

/// The page.
pub fn text() -> String {
    let mut page = Page::new("vgasnet", 7, "settings of jobs whose segments are larger than memory");
    page.section("DESCRIPTION");
    page.paragraphs(
        "vgasnet gives every rank of a job a segment that is larger than memory. The segment lives in a file on the node's disk. \
         A pool in memory is a cache of its pages, and a page that any rank has in its pool is fetched from there.\n\n\
         Programs are written in C, C++, Fortran or Python with the interface of vgasnet(3), or for GASNet, and started by vgasnetrun(1). \
         vgasnet-info(1) tells what a machine offers, and what stands in the way.",
    );
    page.section("ENVIRONMENT");
    page.paragraphs(
        "vgasnetrun passes these variables to all ranks. A size is digits, and at most one of K, M, G, T behind them (powers of 1024). \
         A value that is not allowed is an error, and so is a name that is nearly one of these.",
    );
    list(&mut page, Audience::Users);
    page.section("CLIENTS OF GASNET");
    page.paragraphs("Programs that are written for GASNet, and their launchers, heed these of GASNet's variables, too. The others have no effect, but on the GASNet below the conduit gasnet.");
    list(&mut page, Audience::GasnetClients);
    page.section("MPI PROGRAMS");
    page.paragraphs(
        "libvgasnet-mpi-io and libvgasnet-mpi-cache are loaded before MPI, in programs that know nothing of vgasnet. They read these \
         variables.",
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
