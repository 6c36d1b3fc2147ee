use std::path::Path;

/// Whether what is committed survives a power cut.
///
/// Either way it survives the death of every process of the server, as in [`Cluster::kill`](crate::Cluster::kill).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Durability {
    /// `fsync = off`, and the data in memory where there is enough: fast, and right for all tests that only ask what
    /// the database answers. Not for more than some hundred megabytes. The default.
    #[default]
    Unsynced,
    /// `fsync = on`, and the data in the folder for temporary files: what an operator has. For benches, and for tests that count or time flushes.
    Synced,
}

/// How a cluster is set up.
#[derive(Clone, Debug, Default)]
pub struct Options {
    durability: Durability,
    settings: Vec<(String, String)>,
}

impl Options {
    /// Options with `durability` and no settings beside the defaults of this crate.
    #[must_use]
    pub fn new(durability: Durability) -> Self {
        Self { durability, settings: Vec::new() }
    }

    /// Adds a line to the server's configuration, such as `max_connections` and `20`. It overrules what this crate sets.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// The text of `postgresql.conf`, whole: nothing of what initdb wrote there is kept.
    pub(crate) fn configuration(&self, port: u16, socket_folder: &Path) -> String {
        let (synced, log_of_writes) = match self.durability {
            Durability::Unsynced => ("off", "128MB"),
            Durability::Synced => ("on", "1GB"),
        };
        let port = port.to_string();
        let socket_folder = socket_folder.to_string_lossy();
        let ours = [
            ("listen_addresses", "127.0.0.1"),
            ("port", &port),
            ("unix_socket_directories", &socket_folder),
            ("fsync", synced),
            // A page is torn only when the machine dies, and then `fsync` would have been needed too.
            ("full_page_writes", synced),
            ("max_wal_size", log_of_writes),
            // In the data folder, which is removed with everything else of a killed server.
            ("dynamic_shared_memory_type", "mmap"),
            ("shared_buffers", "64MB"),
            ("max_connections", "200"),
            ("autovacuum", "on"),
            // How soon a standby looks for its primary again, and at times how long its promotion waits: not 5 s.
            ("wal_retrieve_retry_interval", "100ms"),
            ("timezone", "UTC"),
            ("log_timezone", "UTC"),
            ("lc_messages", "C"),
            ("log_line_prefix", "%m [%p] %d "),
        ];
        let theirs = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        ours.into_iter().chain(theirs).map(|(name, value)| line(name, value)).collect()
    }
}

fn line(name: &str, value: &str) -> String {
    format!("{name} = '{}'\n", value.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_stands_after_ours_and_is_quoted() {
        let options = Options::default().setting("port", "1").setting("search_path", "'a', b");
        let text = options.configuration(2, Path::new("/tmp"));
        let lines = text.lines().rev().take(2).collect::<Vec<_>>();
        assert_eq!(lines, ["search_path = '''a'', b'", "port = '1'"]);
    }

    #[test]
    fn only_a_synced_cluster_flushes() {
        let text = |durability| Options::new(durability).configuration(1, Path::new("/tmp"));
        assert!(text(Durability::Synced).contains("\nfsync = 'on'\n"));
        assert!(text(Durability::Unsynced).contains("\nfsync = 'off'\n"));
    }
}
