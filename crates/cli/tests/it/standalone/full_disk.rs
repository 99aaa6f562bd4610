//! A full disk in the home: claims stop, results are kept, and the message is clear.

use super::world::{World, wait_for};
use crate::installation::Installation;
use std::process::Command;

/// A small tmpfs, unmounted at the end. `None` where this user may not mount.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(path: std::path::PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&path).unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=96m", "fencepost-test"])
            .arg(&path)
            .output();
        mount.is_ok_and(|output| output.status.success()).then_some(Self(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_stops_claims_keeps_results_and_says_so() {
    let world = World::new();
    let Some(disk) = SmallDisk::mount(world.home()) else {
        println!("skipped: this user may not mount a small disk");
        return;
    };
    let go = world.path("go");
    let gate = format!("while [ ! -e '{}' ]; do sleep 0.1; done", go.display());
    world.dag(
        "full",
        &format!(
            "tasks:\n  early: {{run: \"{gate}\"}}\n  late: {{run: 'true', depends_on: [early]}}\n"
        ),
    );
    let node = world.start();
    world.trigger("full");
    world.wait_task("full", "early", "running");
    let ballast = disk.0.join("ballast");
    // Everything that is left, to the last block.
    let _ = Command::new("dd")
        .arg("if=/dev/zero")
        .arg(format!("of={}", ballast.display()))
        .arg("bs=64k")
        .output();
    std::fs::write(&go, "").unwrap();
    wait_for("health to say that the disk is full", || {
        let output = world.run(&["health", "-o", "json"]);
        !output.status.success() && String::from_utf8_lossy(&output.stdout).contains("is full")
    });
    let late = || world.json(&["tasks", "show", "full", "@latest", "late"])["state"].clone();
    assert_ne!(late(), "running", "nothing new is started on a full disk");
    std::fs::remove_file(&ballast).unwrap();
    world.wait_state("full", "success");
    assert_eq!(world.attempts("full", "early").len(), 1, "the result was kept");
    world.assert_sound();
    node.stop();
}
