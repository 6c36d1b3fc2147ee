//! Push configs: who may make them, how many, and what is shown of them.

use std::sync::Arc;

use longhaul_engine::{Config, EngineError, PushConfigsQuery, PushParts, Rotated, Scope};
use longhaul_protocol::wire;
use longhaul_testkit::{PlainVault, ScriptedCourier, VERSION, send};

use crate::pushes::*;
use crate::world::*;

fn secretive(config: wire::TaskPushNotificationConfig) -> wire::TaskPushNotificationConfig {
    let authentication = wire::AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: "hush".to_owned() };
    wire::TaskPushNotificationConfig { token: "psst".to_owned(), authentication: Some(authentication), ..config }
}

fn field(error: EngineError) -> String {
    match error {
        EngineError::Invalid(violations) => violations[0].field.clone(),
        other => panic!("not invalid: {other:?}"),
    }
}

on_each_store! {
    async fn secrets_reach_the_receiver_and_nobody_else(place) {
        let courier = swift();
        let world = pushing(place, quick(), &courier).await;
        let task = world.send(send("go").pushing(secretive(hook("a", "one")))).await;
        all_delivered(&world.engine).await;
        let parcel = courier.parcels()[0].clone();
        assert_eq!((parcel.secrets.token.as_str(), parcel.secrets.credentials.as_str()), ("psst", "hush"));
        assert_eq!(parcel.scheme.as_deref(), Some("Bearer"));
        let scope = Scope::default();
        let made = world.engine.create_push_config(&scope, secretive(hook_of(&task, "a", "two")), VERSION).await.expect("it is made");
        let read = world.engine.push_config(&scope, &task.id, "two").await.expect("it is there");
        let page = world.engine.push_configs(all_of(&task.id)).await.expect("they can be listed");
        assert_eq!((page.configs.len(), page.next_page_token.as_str()), (2, ""));
        for shown in [&made, &read, &page.configs[0], &page.configs[1]] {
            let text = format!("{shown:?}");
            assert!(!text.contains("psst") && !text.contains("hush"), "{text}");
            assert_eq!(shown.authentication.as_ref().map(|known| known.scheme.as_str()), Some("Bearer"));
            assert_eq!(shown.task_id, task.id);
        }
        assert!(!format!("{parcel:?}").contains("hush"));
    }

    async fn what_is_wrong_with_a_config_is_said_by_its_field(place) {
        let world = pushing(place, quick(), &swift()).await;
        let task = world.send(send("go")).await;
        let scope = Scope::default();
        let create = |config| world.engine.create_push_config(&scope, config, VERSION);
        let inside = wire::TaskPushNotificationConfig { url: "http://a/".to_owned(), ..hook_of(&task, "a", "one") };
        assert_eq!(field(create(inside).await.expect_err("it is refused")), "url");
        let lines = wire::TaskPushNotificationConfig { token: "a\nb".to_owned(), ..hook_of(&task, "a", "one") };
        assert_eq!(field(create(lines.clone()).await.expect_err("it is refused")), "token");
        assert_eq!(field(create(hook_of(&task, "a", "a\nb")).await.expect_err("it is refused")), "id");
        let sent = world.try_send(send("go").pushing(lines)).await;
        assert_eq!(field(sent.expect_err("it is refused")), "configuration.taskPushNotificationConfig.token");
        assert_eq!((world.total().await, config_ids(&world.engine, &task.id).await.len()), (1, 0));
    }

    async fn a_task_has_only_so_many_configs(place) {
        let few = Config { push_configs_max: 2, ..pushing_config() };
        let world = pushing_with(place, ask(), &swift(), few).await;
        let task = world.send(send("input which?").pushing(hook("a", "one"))).await;
        let scope = Scope::default();
        let create = |id: &'static str| world.engine.create_push_config(&scope, hook_of(&task, "b", id), VERSION);
        create("two").await.expect("there is room");
        let refused = create("three").await;
        assert!(matches!(refused, Err(EngineError::Exhausted(_))), "{refused:?}");
        create("two").await.expect("it replaces the one of that id");
        let refused = world.try_send(send("input which?").to(&task.id).pushing(hook("a", "three"))).await;
        assert!(matches!(refused, Err(EngineError::Exhausted(_))), "{refused:?}");
        assert_eq!(config_ids(&world.engine, &task.id).await, ["one", "two"]);
        world.engine.delete_push_config(&Scope::default(), &task.id, "two").await.expect("it is removed");
        create("three").await.expect("there is room again");
        world.send(send("ok").to(&task.id).pushing(hook("c", "one"))).await;
        let read = world.engine.push_config(&Scope::default(), &task.id, "one").await.expect("it is there");
        assert_eq!(read.url, "https://c/one", "the message's config replaces it");
    }

    async fn configs_of_others_are_not_there(place) {
        let courier = swift();
        let world = pushing(place, quick(), &courier).await;
        let (mine, other) = (owner("me"), owner("another"));
        let task = world.send(send("go").in_scope(mine.clone()).pushing(hook("a", "one"))).await;
        let engine = &world.engine;
        let query = PushConfigsQuery { scope: other.clone(), ..all_of(&task.id) };
        let refused = [
            engine.create_push_config(&other, hook_of(&task, "b", "two"), VERSION).await.map(drop),
            engine.push_config(&other, &task.id, "one").await.map(drop),
            engine.push_configs(query).await.map(drop),
            engine.delete_push_config(&other, &task.id, "one").await,
        ];
        for refused in refused {
            assert!(matches!(refused, Err(EngineError::TaskNotFound(_))), "{refused:?}");
        }
        assert!(engine.push_config(&mine, &task.id, "one").await.is_ok());
        all_delivered(engine).await;
        assert!(courier.parcels().iter().all(|parcel| is_for(parcel, "a")));
    }

    async fn removing_is_safe_to_repeat_and_ends_deliveries(place) {
        let courier = swift();
        let gate = longhaul_testkit::Gate::new();
        let world = pushing(place, patient(&gate), &courier).await;
        let task = world.send(send("go").immediately().pushing(hook("a", "one"))).await;
        gate.reached(1).await;
        all_delivered(&world.engine).await;
        let scope = Scope::default();
        for _ in 0..2 {
            world.engine.delete_push_config(&scope, &task.id, "one").await.expect("it is gone");
        }
        let missing = world.engine.push_config(&scope, &task.id, "one").await;
        assert!(matches!(missing, Err(EngineError::PartNotFound { .. })), "{missing:?}");
        gate.open();
        world.until(&task.id, longhaul_protocol::TaskState::Completed).await;
        assert_eq!((order(&courier, "one"), backlog(&world.engine).await.configs), (vec![1, 2], 0));
    }

    async fn configs_are_listed_in_pages(place) {
        let world = pushing(place, quick(), &swift()).await;
        let task = world.send(send("go")).await;
        for id in ["e", "a", "c", "b", "d"] {
            world.engine.create_push_config(&Scope::default(), hook_of(&task, "a", id), VERSION).await.expect("it is made");
        }
        let (mut pages, mut page_token) = (Vec::new(), String::new());
        loop {
            let query = PushConfigsQuery { page_size: 2, page_token, ..all_of(&task.id) };
            let page = world.engine.push_configs(query).await.expect("a page");
            pages.push(page.configs.into_iter().map(|config| config.id).collect::<Vec<_>>());
            if page.next_page_token.is_empty() {
                break;
            }
            page_token = page.next_page_token;
        }
        assert_eq!(pages, [vec!["a", "b"], vec!["c", "d"], vec!["e"]]);
    }

    async fn an_engine_without_a_courier_says_so(place) {
        let world = place.world(quick()).await;
        let task = world.send(send("go")).await;
        let (engine, scope) = (&world.engine, Scope::default());
        assert!(!engine.pushes());
        let refused = [
            engine.create_push_config(&scope, hook_of(&task, "a", "one"), VERSION).await.map(drop),
            engine.push_config(&scope, &task.id, "one").await.map(drop),
            engine.push_configs(all_of(&task.id)).await.map(drop),
            engine.delete_push_config(&scope, &task.id, "one").await,
            world.try_send(send("go").pushing(hook("a", "one"))).await.map(drop),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(EngineError::PushNotSupported)), "{refused:?}");
        }
        assert_eq!(world.total().await, 1);
    }

    async fn another_key_is_refused_and_a_new_one_takes_over(place) {
        let courier = swift();
        let world = pushing(place, ask(), &courier).await;
        world.engine.check_push_key().await.expect("the first key holds");
        let task = world.send(send("input which?").pushing(secretive(hook("a", "one")))).await;
        all_delivered(&world.engine).await;
        world.engine.shutdown(std::time::Duration::ZERO).await.expect("it goes down");
        let with = |vault: PlainVault| {
            let courier: Arc<ScriptedCourier> = Arc::clone(&courier);
            place.idle(&world.agent, pushing_config()).with_push(PushParts { courier, vault: Arc::new(vault) })
        };
        let foreign = with(PlainVault::new("foreign"));
        assert!(matches!(foreign.check_push_key().await, Err(EngineError::UnsupportedOperation(_))));
        let both = with(PlainVault { key: "new", former: Some("key") });
        both.check_push_key().await.expect("it can read what is there");
        assert_eq!(both.rotate_push_key().await.expect("it works"), Rotated { resealed: 1, unreadable: 0 });
        assert_eq!(both.rotate_push_key().await.expect("it works"), Rotated::default());
        let new = with(PlainVault::new("new"));
        new.check_push_key().await.expect("the new key holds");
        new.start().await.expect("an engine starts");
        let given = courier.parcels().len();
        new.send_message(send("ok").to(&task.id).build()).await.expect("it is taken");
        all_delivered(&new).await;
        let after = courier.parcels().split_off(given);
        assert!(!after.is_empty() && after.iter().all(|parcel| parcel.secrets.credentials == "hush"));
    }
}

/// Ends as the message says.
fn ask() -> longhaul_testkit::ScriptedAgent {
    longhaul_testkit::ScriptedAgent::new(|turn| {
        let text = turn.message().text();
        Box::pin(async move { Ok(longhaul_testkit::end_of(&text)) })
    })
}
