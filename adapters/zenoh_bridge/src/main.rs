// SPDX-License-Identifier: Apache-2.0
//! A bridge from one DDS domain to Zenoh: `lagometer-zenoh-bridge dds|ros2dds CONFIGURATION.json5`.
//!
//! Zenoh's own plugins with Zenoh's own configuration file, like the vendor's `zenoh-bridge-dds -c` and
//! `zenoh-bridge-ros2dds -c`, which are not on any registry. It bridges until a signal ends it.
use std::error::Error;
use std::io::Write;

use zenoh::internal::plugins::PluginsManager;
use zenoh::internal::runtime::RuntimeBuilder;
use zenoh::Config;
use zenoh_plugin_dds::DDSPlugin;
use zenoh_plugin_ros2dds::ROS2Plugin;

const USAGE: &str = "usage: lagometer-zenoh-bridge dds|ros2dds CONFIGURATION.json5";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    zenoh::init_log_from_env_or("warn");
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [plugin, file] = words.as_slice() else {
        return Err(USAGE.into());
    };
    let mut plugins = PluginsManager::static_plugins_only();
    match plugin.as_str() {
        "dds" => plugins.declare_static_plugin::<DDSPlugin, &str>("dds", true),
        "ros2dds" => plugins.declare_static_plugin::<ROS2Plugin, &str>("ros2dds", true),
        _ => return Err(USAGE.into()),
    }
    let mut runtime = RuntimeBuilder::new(Config::from_file(file)?).plugins_manager(plugins).build().await?;
    runtime.start().await?;
    let mut output = std::io::stdout();
    writeln!(output, "lagometer-zenoh-bridge: serves")?;
    output.flush()?;
    std::future::pending().await
}
