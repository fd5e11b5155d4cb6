//! Slow registries and large garbage of one owner, while others start containers.

use std::sync::Arc;
use std::time::Duration;

use base::task::Tasks;
use runtime::{Container, Embedded};

use crate::lab::{Lab, container};
use crate::packing;

/// Starts containers of one owner whose image comes at a byte per second.
fn start_slowly(lab: &Lab, runtime: &Arc<Embedded>, count: usize) -> Tasks<String> {
    let mut tasks = Tasks::new();
    for at in 0..count {
        let image = lab.registry.put(&format!("drip/{at}"), &packing::web());
        let slow = Container {
            owner: Some("slow".to_owned()),
            ..container(&format!("slow-{at}"), &image)
        };
        let runtime = runtime.clone();
        tasks.spawn(
            "slow start",
            async move { runtime.start(&slow).await.unwrap_err().to_string() },
        );
    }
    tasks
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_registry_of_one_owner_does_not_delay_others() {
    let mut lab = Lab::new().await;
    let runtime = Arc::new(lab.runtime.take().unwrap());
    let slow = start_slowly(&lab, &runtime, 40);
    tokio::time::sleep(Duration::from_secs(2)).await;
    // Waits for the lock of layers, if it needs one that starts hold.
    let collector = runtime.clone();
    let mut gc = Tasks::new();
    gc.spawn("gc", async move { collector.gc(Duration::from_hours(1)).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let fast = Container { owner: Some("fast".to_owned()), ..lab.shell("fast-0", "sleep 100") };
    let started = tokio::time::timeout(Duration::from_secs(15), runtime.start(&fast)).await;
    drop(slow);
    assert!(matches!(started, Ok(Ok(_))), "{started:?}");
    runtime.stop("fast-0").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn gc_removes_temporary_files_of_killed_processes() {
    let lab = Lab::new().await;
    let [dead, alive] = [999_999_999, std::process::id()].map(|pid| {
        let dir = lab.options.dir.join(format!("tmp/{pid}-0123456789ab"));
        std::fs::create_dir(&dir).unwrap();
        dir
    });
    lab.runtime().gc(Duration::from_hours(1)).await;
    assert_eq!((dead.exists(), alive.exists()), (false, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn gc_retains_what_operations_in_progress_use() {
    let mut lab = Lab::new().await;
    // Stored, but no image refers to it: the next pull finds it.
    let known = lab.shell("known-0", "true");
    lab.run(&known).await;
    lab.runtime().stop("known-0").await.unwrap();
    let runtime = Arc::new(lab.runtime.take().unwrap());
    let (collector, stop) = (runtime.clone(), Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let stopped = stop.clone();
    let mut gc = Tasks::new();
    gc.spawn("gc", async move {
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            collector.gc(Duration::ZERO).await;
        }
    });
    for at in 0..20 {
        let name = format!("new-{at}");
        let started = runtime.start(&lab.shell(&name, "sleep 100")).await;
        assert!(started.is_ok(), "{started:?}");
        runtime.stop(&name).await.unwrap();
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    gc.join_all().await;
}
