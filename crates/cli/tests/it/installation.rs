//! What a person does with an installation, whatever it is made of: verbs, DAG files, a folder.

use crate::standalone::world::wait_for;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

pub(crate) trait Installation {
    /// A file of the test's folder.
    fn path(&self, name: &str) -> PathBuf;

    /// The binary with these arguments, in the surroundings of this installation.
    fn command(&self, args: &[&str]) -> Command;

    fn dag(&self, name: &str, yaml: &str) {
        std::fs::write(self.path("dags").join(format!("{name}.yaml")), yaml).unwrap();
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The answer of a verb as JSON; null if it failed.
    fn json(&self, args: &[&str]) -> Value {
        let output = self.command(args).args(["-o", "json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    /// A verb that must succeed.
    fn must(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {text}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn trigger(&self, dag: &str) -> String {
        let load = || self.json(&["dags", "show", dag]).is_object();
        wait_for(&format!("{dag} to be loaded"), load);
        self.must(&["dags", "trigger", dag, "-o", "name"]).trim().to_owned()
    }

    /// The audit of all invariants finds nothing.
    fn assert_sound(&self) {
        let output = self.run(&["doctor"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }
}
