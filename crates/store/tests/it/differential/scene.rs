//! A scene that leads to rows that chance does not come to.

/// What a play by chance comes to too seldom, with fixed values (`=`), on empty stores.
pub(super) const SCENE: &str = "
dag_upsert =d0 n n =0 =1 file name json word word n n cursor? now? now now name?
run_insert =d0 =r0 n rtype now now? now? now json json word? name now n now?
run_insert =d0 =r1 n rtype now now? now? now json json word? name now n now?
run_start =1 now n now?
run_end =1 =success now word =running
run_reopen =1
run_start =2 now n now?
ti_insert =2 =0 =-1 name =d0 =none n pool n n n =0 =2 word? now? now? n
run_older_than_waiting =d0
run_places =d0 =2
run_insert =d1 =r0 n =scheduled =4000000000 now? now? now json json word? name now n now?
run_insert =d1 =r1 n =scheduled =4000000000 now? now? now json json word? name now n now?
audit_doubled_slots =0 =9
installation_make id now
job_insert =00000000-0000-0000-0000-000000000001 =worker =running name name n n uuid name home name queue n n? n now now now? never flag =1 n
lease_assert =00000000-0000-0000-0000-000000000001 =1
attempt_insert =1 uuid =2 =0 =-1 =d0 n n why =0 outcome =q0 n past now =
attempt_claim =00000000-0000-0000-0000-000000000001 name name now =q0 =1 n
attempt_start =1 =00000000-0000-0000-0000-000000000001 word uuid now n
attempt_level_told =1 =00000000-0000-0000-0000-000000000001 name
attempt_level =1 name
attempt_unstart =1 =00000000-0000-0000-0000-000000000001
attempt_open =00000000-0000-0000-0000-000000000001 =0 limit
attempt_left =00000000-0000-0000-0000-000000000001 =0 limit
attempt_page_open =0 =,running, = = limit
job_leases =00000000-0000-0000-0000-000000000001
hold_insert =1 =p0 n =d0 =2 =0
attempt_active =0 limit
attempt_stop =1 stop name now word?
attempt_harden_stop =1 stop name word?
attempt_keep_open =1 =stopping word word?
attempt_stop_open =1 stop name now
attempt_end =1 =lost_open =lost word word? n? n? counted word? word? now =group
incident_open kind =00000000-0000-0000-0000-000000000001 now name json
attempt_link =1 =00000000-0000-0000-0000-000000000001 =,group,
attempt_of_incident =1 =0 limit
attempt_doubtful =1
attempt_doubts limit
attempt_uncertain =1 =00000000-0000-0000-0000-000000000001
attempt_gone =1
attempt_link =1 =00000000-0000-0000-0000-000000000001 =,group,
attempt_gone_of =00000000-0000-0000-0000-000000000001
attempt_page_ended =0 =,ended, = = limit
ti_insert =2 =1 =-1 name =d0 =running n pool n n n =0 =0 word? now? now? n
ti_checkpoint_set =2 =1 =-1 =0 word
ti_checkpoint_get =2 =1 =-1
ti_insert =2 =1 =0 name =d0 =none n pool n n n =0 =0 word? now? now? n
ti_change =2 =1 =0 =none =0 =up_for_retry =0 n n n n n n n n flag recheck =5 why outcome word? now? now? now? now?
ti_retry_due =9 limit
ti_insert =2 =2 =-1 name =d0 =scheduled n =p0 n n n =0 =0 word? now? now? n
ti_candidates =d0 =p0 =9 =0 =0 =-9 limit
ti_insert =2 =3 =-1 name =d0 =none n pool n n n =0 =0 word? now? now? n
ti_change =2 =3 =-1 =none =0 =deferred =3 =1 n n n n n =0 n flag recheck =5 why outcome word? now? now? now? now?
trigger_insert =3 =2 =3 =-1 =d0 kind json json =1 =1 =5 =5 =5
ti_timer_due =9 limit
trigger_claim =00000000-0000-0000-0000-000000000001 =9
trigger_to_look =00000000-0000-0000-0000-000000000001 =9 =9
trigger_next_look =00000000-0000-0000-0000-000000000001
trigger_loads =00000000-0000-0000-0000-000000000001
trigger_looked =3 =00000000-0000-0000-0000-000000000001 =7 json
ti_defer =2 =3 =-1 =4 =1
ti_deferred_since =2 =3 =-1 =1
ti_event_set =2 =3 =-1 =3 json
ti_event_get =2 =3 =-1 =1
trigger_get =3
trigger_list =0 =9
trigger_delete =3
trigger_insert =3 =2 =3 =-1 =d0 kind json json =1 =1 =5 =5 =5
trigger_delete_of_run =2
api_token_insert =i0 word =admin now never never =i1 =hash
api_token_admins
api_token_by_hash =hash
pool_make =p1 =5 word
hold_insert =2 =p1 =3 =d0 =2 =0
pool_set =p1 =1 word
pool_shrunk
hold_free =2
pool_settled
dag_upsert =d3 =1 =7 =0 =1 file name json word word n n cursor? now? now now name?
retention_set_keep =d3 =7 =0
run_insert =d3 =r0 =7 =scheduled =10 now? now? =10 json json word? name =10 n now?
run_insert =d3 =r1 =7 =scheduled =20 now? now? =20 json json word? name =20 n now?
backfill_found =d3 =10
run_start =5 now n now?
run_end =5 =success =77 word =running
retention_dags = =200 =100 =100 =9
retention_runs =d3 =100 =0 =0 =9
retention_drop =5 =77
job_insert =00000000-0000-0000-0000-000000000009 =worker =stopped name name n n uuid name home name queue n n? n now now =55 never flag =1 n
retention_jobs =100 =0 = =9
retention_job_drop =00000000-0000-0000-0000-000000000009 =55
home_take =h9 =1 =00000000-0000-0000-0000-000000000009
retention_homes = =9
retention_unread = =9
retention_leave =9 now
retention_left
retention_size =9
retention_key =9
run_insert =d0 =r2 n =manual =1 now? now? =1 json json word? name =1 =32 =1
run_next_alert
run_alerts =9 =9
callback_insert =c1 =d0 =r0 =1 name =-1 =3 =lost kind =t1 json json =due =1 =1 =1 past? word?
callback_targets = =9 =9
callback_due =t1 =9 =9
callback_next
callback_counts
callback_take =c1 =5 =1
callback_failed =c1 =0 =dead =5 =6 word
callback_page = =dead =d0 =9
callback_retry =c1 =7
callback_delivered =c1 =8
callback_get =c1
callback_prune =99 =9
occasion_insert =1 =lost =1 =0 =-1 =3 =1 word json
occasion_any =0
occasion_peek =0 =9
occasion_remove =1
backfill_insert =d7 n past past reproc n flag json json n now name
backfill_slot_insert =1 past saction run
backfill_state =1 =running =completed =5 name?
retention_backfill_slots =9 =9
asset_use_put =a0 =consumer =d3 =
asset_emit_by_hand =a0 =30 name json
asset_fan_out =1
asset_waiting = = =9
asset_consumed =d3
asset_queued =d3 =a0 =9
asset_take =d3 =2 =a0 =9
asset_of_run =2 =9
asset_since =a0 =5
asset_event_takers =1
asset_emit =2 =a0 =40 name =-1 =0 name json
asset_fan_out =2
asset_use_drop =d3
asset_unqueue =d3
dag_upsert =d8 =1 =7 =0 =0 file name json word word n n cursor? now? now now name?
asset_use_put =a1 =consumer =d8 =
asset_emit_by_hand =a1 =31 name json
asset_fan_out =3
retention_asset_queue =99 =9
";
