//! What each statement is asked with: its name, then the kind of each of its values (see
//! [`super::draw`]). A statement that has no line here fails the test.

/// In front of a name: it is drawn more often, since others need its rows (`*`); its order has ties,
/// so only the set of its rows counts (`~`); it answers what is each database's own (`!`); two sets of
/// one call may take numbers that the other database does not (`1`).
pub(super) const WORDS: &str = "
api_token_insert id word trole now past? never id uuid
api_token_by_hash uuid
api_token_get id
api_token_page id limit
api_token_revoke id now
api_token_admins
api_token_used id now
api_token_revoke_made_by id now
*attempt_insert token uuid run task map dag n n why token0 outcome queue n past now ramp
attempt_get token
*asset_emit run name now name map token0 name json
*asset_emit_by_hand name now name json
*asset_fan_out n
asset_waiting dag? name? limit
asset_queued dag name limit
asset_take dag run name n
asset_of_run run limit
asset_since name past
asset_use_drop dag
*asset_use_put name arole dag name
asset_unqueue dag
asset_uses name limit
asset_outlets dag name
asset_consumed dag
asset_page name? limit
asset_get name limit
asset_event_page n limit
asset_event_page_of n limit name
asset_event_takers n
attempt_look token
attempt_by_id uuid
attempt_of_ti run task map
*attempt_claim job name name now queue limit n
*attempt_claim_ramp job name name now queue limit n pool
*attempt_start token job word uuid now n
attempt_unstart token job
attempt_end token astate outcome word word? n? n? counted word? word? now word?
*attempt_stop token stop name now word?
attempt_harden_stop token stop name word?
attempt_open job token0 limit
attempt_hand_over token job name name now n
attempt_held job
attempt_asked token job now
attempt_answered token job n
attempt_reclaim token job name name word uuid now n
attempt_of_earlier token limit
attempt_left job token0 limit
attempt_keep_open token astate word word?
attempt_stop_open token stop name now
attempt_level token name
attempt_level_told token job name
attempt_link token job word
attempt_gone token
attempt_gone_of job
attempt_doubtful token
attempt_doubts limit
attempt_of_incident n token0 limit
attempt_uncertain n job
attempt_replaced token
attempt_unclaimed past limit
~attempt_unstarted past all
attempt_active token0 limit
attempt_in_hands job token0 limit
attempt_of_run run token0 limit
attempt_in_hand run
!attempt_lock_in_hand run
attempt_any_queued queue
*attempt_log_put token n n n flag word now
attempt_log_last token
attempt_log_from token n n limit
attempt_log_newest token limit
attempt_log_remove token
*backfill_insert dag n past past reproc n flag json json n now name
backfill_get n
backfill_take n
backfill_under_way n limit
backfill_page n dag flag limit
backfill_move n past flag
backfill_pause n flag
backfill_state n bstate bstate now? name?
backfill_found dag past
*backfill_slot_insert n past saction run
~backfill_slot_counts n
*backfill_adopt run n
audit_runs run0 run
audit_tis run0 run
audit_logged run0 run
audit_attempts run0 run
audit_outputs run0 run
audit_pools
audit_stray_holds
audit_doubled_slots run0 run
audit_last_run
audit_versions run0 run
*ti_checkpoint_set run task map held word
ti_checkpoint_get run task map
ti_timer_due now limit
ti_deferred_since run task map n
*ti_defer run task map past n
*ti_event_set run task map held json
ti_event_get run task map n
*trigger_insert token run task map dag kind json json flag past past? past? past?
trigger_get token
trigger_delete token
trigger_delete_of_run run
*trigger_claim job limit
trigger_loads job
~trigger_to_look job now all
trigger_next_look job
trigger_next_timer
trigger_looked token job past json
trigger_list token0 limit
dag_get dag
dag_lock dag
dag_take dag
!dag_lock_files
dag_list dag? limit
dag_due past limit
dag_next_due
dag_advance dag now? now? cursor?
*dag_upsert dag n n flag flag file name json word word n n cursor? now? now now name?
dag_pause dag flag name? now? cursor? now
dag_deactivate file now dag dag
dag_files
dag_file_own job
dag_file_put job name
dag_file_drop job name
~dag_file_elsewhere job
dag_file_prune
version_list dag limit
*version_insert dag n uuid json word now
version_content n
import_error_set file json now
import_error_clear file
import_error_list limit
import_error_get file
*event_insert now kind dag? run? name? map? token0 name istate? istate? word? json?
idempotency_find id past
idempotency_put id name status word now past
idempotency_forget id name
idempotency_prune past limit
home_take home n job
home_registration home
incident_open kind job now name json
incident_count job n
incident_settle job now
incident_page n limit
incident_page_open n limit
incident_get n
incident_of_job job
incident_close n now name word?
incident_ripe limit
*installation_make id now
installation_load
epoch_raise n
!epoch_renew n now
epoch_force n n now
epoch_reconciled n
epoch_settled n
!installation_standing
tokens_mint n
*job_insert job jkind jstate name name n n uuid name home name queue n n? n now now now? never flag n n
job_get job
~job_live
job_predecessors jkind home job
job_succeed job job now
job_succeeded job
job_stop job now flag
job_drain job
job_resume job
job_remove job
job_confirm_dead job now word
lease_renew job n now n n
lease_state job
lease_read
lease_read_detached
lease_shortest
lease_lock job
lease_declare job n now word json past n
lease_departed limit
lease_settled job
lease_orphan job
lease_assert job n
lease_alive job
lease_epoch job n
lease_behind n
lease_epochs job
lease_longest
attempt_page_queued token0 astates dag? name? limit
attempt_page_open token0 astates dag? name? limit
attempt_page_ended token0 astates dag? name? limit
attempt_page_of_ti run task map token0 limit
attempt_page_of_task run task token0 limit
attempt_refused token
version_page dag n limit
version_get dag n
version_number n
version_runs dag
import_error_page file? limit
import_error_files file
event_page_of_run run n dag? name? flag map kinds limit
event_page_of_attempt token n dag? name? flag map kinds limit
event_page zero n dag? name? flag map kinds limit
job_page jkind name id name? flag past limit
job_newest jkind name
job_leases job
job_evidence job
pool_page pool? limit
pool_get pool
pool_waiting
run_page_of_dag dag past run rstates rtype? name? flag past past limit
run_page run rstates rtype? name? flag past past limit
run_task_counts run
run_last_event run
run_dots dag limit
run_count_active dag
ti_page_of_task run task map istates limit
xcom_of_ti run task map
*outbox_insert kind json now
outbox_due past limit
outbox_take past limit now
outbox_done n
outbox_again n now word
outbox_next
*callback_insert id dag runid run name? map token0 =lost kind name json json =due past past past past? word?
callback_targets = now limit
~callback_due name now all
callback_take id now past
callback_delivered id now
callback_failed id n =due past past? word
callback_retry id now
callback_next
callback_get id
callback_page = = dag all
callback_counts
callback_count_ended past
callback_prune past limit
*occasion_insert past =lost run task map token0 n word? json
occasion_peek n limit
occasion_remove n
occasion_any n
pool_list
pool_slots pool
ramp_next ramp
ramp_waiting pool queue limit
ramp_list
ramp_get pool
*ramp_make pool n past n
ramp_set pool n past n
~ramp_over past
retention_dags dag? past past past limit
*retention_unread dag? limit
*retention_set_keep dag n n
retention_runs dag past past run0 limit
*retention_drop run now
retention_leave run now
retention_left
retention_log_rows run all
retention_event_rows run all
retention_xcom_rows run all
~retention_attempt_rows run all
retention_ti_rows run all
retention_key run
retention_size run
retention_jobs past past id limit
retention_job_drop job now
retention_homes name? limit
retention_home_drop home job
retention_incidents n limit
retention_incident_drop n
retention_logs token0 n n limit
retention_log_drop token n n
retention_events past limit
retention_events_old n limit
retention_backfill_slots past limit
retention_backfills past limit
retention_backfills_old past
retention_asset_queue past limit
retention_asset_events past limit
retention_asset_events_old past
retention_asset_rows run all
retention_tokens past limit
retention_tokens_old past
retention_answers_old past
pool_lock pool
pool_take pool
pool_shrunk
*pool_set pool n word
*pool_make pool n word
*pool_settled
pool_delete pool
*hold_insert token pool n dag run task
hold_free token
hold_keep token
look
vitals_jobs now
vitals_queued
vitals_served
vitals_scheduled
vitals_open
vitals_held
vitals_runs
vitals_effects
vitals_figures
~hold_of_dags
hold_active
*1run_insert dag runid n rtype slot? now? now? now json json word? name now n now?
run_get dag runid
run_take run
run_by_pk run
run_version token
run_startable_dags dag? limit
run_active_count dag
run_queued dag past run limit
run_count dag
run_count_of_assets dag
*run_start run now n now?
run_count_down run n
*run_end run rstate now word rstate
run_stop run stop name
run_reopen run
run_set_unfinished run n
run_overdue past limit
run_next_deadline
~run_alerts now all
run_next_alert
run_previous dag past flag
run_list dag past run limit
run_dated_before dag past limit
run_dated_after dag past limit
run_active dag limit
run_pause run flag
run_note run word
run_places dag run
run_older_than_waiting dag
run_of_backfill n rstate flag limit
run_of_backfill_back n rstate flag limit
run_unstopped_of n limit
run_slots_before dag past limit
run_slot_edges dag
run_oldest_slot dag
run_delete_events run
run_delete_xcoms run
run_delete_assets run
run_delete_tis run
run_delete_attempts run
run_delete run
*vault_set name name word word now name
vault_get name name
vault_sealed name name
vault_page name name limit
vault_delete name name
vault_reseal name name word word
signing_key_make uuid now
signing_key_load
*ti_insert run task map name dag istate n pool n n n flag recheck word? now? now? n
ti_get run task map
ti_of_attempt token
!ti_lock_task run task
!ti_lock_unfinished run
ti_head run task
ti_width run task
1ti_grow run task map n json
ti_drop run task map
ti_remap run task map json
~ti_remove run task map istate now
ti_add_upstreams run task n
ti_of_task run task
ti_list run task map limit
ti_held run0 task map limit
ti_retry_due past limit
ti_next_retry
ti_next_pair dag? pool?
ti_candidates dag pool n run0 zero zero limit
*ti_change run task map istate held istate token0 n n n n n n n n flag recheck now? why outcome word? now? now? now? now?
ti_cancel_events run now name word
ti_cancel run now word
ti_states run
ti_forward_due run0 task map limit
*ti_forwarded run task map istate
ti_set_counts run task map n n n n n
*ti_move run task istate word flag now? now?
~ti_recheck recheck zero zero zero all
*ti_set_recheck run task map recheck
xcom_clear run task map
xcom_unset run task map xname
xcom_clear_others run task map token
*xcom_insert run task map xname word token
xcom_of_task run task
xcom_of_run run
";
