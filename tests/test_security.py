"""What must hold whoever talks to a host, and the tests that hold it.

A promise without a test is none: one that is renamed or taken away is missed here."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PROMISES: dict[str, list[str]] = {
    "1 loopback by default, another address with a token and the owner's word": [
        "doors/test_server.py: it_listens_on_loopback_only_by_default, another_address_needs_the_users_word",
        "doors/test_server.py: another_address_needs_a_token",
    ],
    "2 a token always exists, and without one the other checks stay": [
        "doors/test_identity.py: the_owners_token_is_made_at_the_first_look_and_kept",
        "doors/test_identity.py: secrets_are_readable_by_their_owner_only",
        "doors/test_gate_origins.py: without_token_leaves_host_and_origin_checks_on",
        "cli/test_serve.py: without_token_warns",
    ],
    "3 constant time, hashes only, shown once": [
        "doors/test_identity.py: tokens_are_compared_in_constant_time, only_a_hash_of_a_named_token_is_stored",
        "cli/test_token.py: a_token_is_made_shown_once_used_and_revoked, tokens_made_at_once_are_all_kept",
    ],
    "4 every route has a scope": [
        "doors/test_gate.py: every_route_of_a_built_server_has_a_scope, every_route_refuses_a_stranger",
        "doors/test_gate.py: a_token_reaches_only_what_its_scopes_name, what_a_caller_says_of_its_scope_is_ignored",
    ],
    "5 only our own names as host": [
        "doors/test_gate.py: a_rebound_host_name_is_misdirected_for_every_method, two_host_headers_are_none",
        "doors/test_gate.py: a_rebound_host_name_is_misdirected_for_an_upgrade_and_for_pages",
    ],
    "6 no other site's page": [
        "doors/test_gate_origins.py: another_sites_page_can_neither_read_nor_change, another_sites_page_gets_no_socket",
        "doors/test_gate_origins.py: no_cors_header_by_default",
        "doors/test_origin.py: a_foreign_page_does_not",
    ],
    "7 credentials of sockets, and no token in a log": [
        "doors/test_gate.py: a_socket_takes_a_bearer_header_a_cookie_or_the_query",
        "doors/test_gate.py: a_token_in_an_address_is_never_logged",
    ],
    "8 cookies end with their token, and so do sockets": [
        "doors/test_web.py: the_printed_link_logs_in_once_and_the_token_leaves_the_address",
        "doors/test_web.py: under_tls_the_cookie_is_secure, logging_out_and_revoking_end_the_login",
        "doors/test_gate.py: revoking_a_token_ends_its_sockets_and_streams",
    ],
    "9 a client id belongs to its connection": [
        "doors/ahp/test_lifecycle.py: a_client_id_belongs_to_its_token",
        "doors/ahp/test_bad_input.py: speaking_for_another_client",
    ],
    "10 guessers are slowed, owners are not": [
        "doors/test_gate_limits.py: a_guesser_is_slowed_and_the_owner_is_not",
        "doors/test_gate_limits.py: too_many_messages_of_one_token_are_slowed_and_nobody_elses",
    ],
    "11 the endpoint file": ["test_home.py: the_endpoint_file, a_strange_endpoint_file_is_ignored, who_is_alive"],
    "12 one jail": [
        "workspace/test_jail.py: paths_that_lead_out_are_refused, a_sibling_that_shares_the_prefix_is_outside",
        "workspace/test_jail.py: links_out_are_refused_at_the_end_and_on_the_way",
        "workspace/test_jail.py: another_case_of_the_root_is_another_folder, names_that_cannot_be_are_bad_requests",
        "workspace/test_jail.py: the_kernels_folders_are_outside_even_of_everything",
        "workspace/test_jail.py: somebody_who_swaps_all_the_time_never_wins, the_hosts_own_folder_is_closed",
    ],
    "13 bounded reads, atomic writes": [
        "workspace/test_files.py: a_read_over_the_limit_needs_a_range, the_end_of_a_write_that_fails_is_the_old_file",
        "workspace/test_files.py: if_match_refuses_what_somebody_else_has_changed",
    ],
    "14 children: no secrets, a group of their own, ended with all they started": [
        "agents/test_supervisor.py: an_agent_gets_no_secret_of_ours, an_agent_is_alone_in_its_session_and_group",
        "workspace/test_process.py: a_command_is_alone_in_its_session_and_group",
        "workspace/test_process.py: who_hides_its_environment_ends_with_its_group",
        "workspace/test_adoption.py: what_forks_twice_and_clears_its_environment_ends_with_its_command",
        "agents/test_call_processes.py: only_the_processes_of_the_call_end, a_cancel_of_the_turn",
        "live/test_cancel.py: cancel_ends_what_the_running_call_started",
    ],
    "15 terminals": [
        "doors/rest/test_terminals.py: without_the_terminal_scope_there_is_no_terminal",
        "workspace/test_terminal.py: sizes_are_checked, the_scrollback_is_bounded",
    ],
    "16 agents' text is text": [
        "doors/test_web.py: pages_run_nothing_inline_and_nothing_foreign",
        "doors/rest/test_events.py: blobs_go_out_as_downloads",
        "doors/rest/test_sessions.py: a_session_is_exported_as_a_download",
    ],
    "17 escapes outside of a terminal": ["workspace/test_escapes.py: plain, what_cannot_be_seen_is_spelled_out"],
    "18 asking is the default": [
        "host/test_approval.py: without_a_setting_it_waits_for_ever, no_answer_in_time_is_no",
        "host/test_action.py: a_job_has_a_policy_of_its_own_and_the_owners_rules",
    ],
    "19 answers by kind": [
        "agents/test_acp_permission.py: a_permission_is_answered_by_kind",
        "agents/test_acp_permission.py: without_a_refusing_option_a_no_stops_the_turn",
    ],
    "20 a yes is for one call, and the first one counts": [
        "agents/test_hostile_actions.py: a_yes_is_for_one_action_and_for_what_was_shown",
        "host/test_approval.py: the_first_valid_answer_wins",
        "property/test_approvals.py: one_decision",
    ],
    "21 grants": [
        "host/test_approval.py: deny_beats_allow, a_grant_for_something_else_does_not_count",
        "host/test_approval.py: a_grant_that_has_ended_stays_ended_when_the_clock_goes_back",
    ],
    "22 vendors' logins": ["agents/test_logins.py: no_agent_opens_what_a_vendor_keeps"],
    "23 what is printed approves nothing": ["agents/loop/test_actions.py: what_a_model_prints_cannot_approve"],
    "24 bounds": [
        "test_limits.py: every_bound_is_used, every_bound_of_the_log_and_the_host_is_tried, a_bound_has_a_reason",
        "doors/test_gate_limits.py: a_body_may_be_as_large_as_its_limit_and_not_one_byte_larger",
    ],
    "25 no secret anywhere": ["doors/test_canary.py: a_planted_secret_shows_up_nowhere"],
    "26 the audit record": [
        "doors/rest/test_events.py: the_audit_record_is_the_admins_and_its_places_are_everybodys",
        "host/test_approval.py: every_answer_of_a_person_is_in_the_audit_record",
    ],
    "27 private files": [
        "test_home.py: the_folder_is_private_also_when_it_was_not, private_files_are_whole_and_private"
    ],
    "28 no traceback in an answer": ["doors/test_gate.py: a_bug_inside_is_told_without_its_traceback"],
    "29 a hostile page in a real browser": [
        "../web/browser/hostile.test.ts: cannot read, change, embed or listen to anything",
    ],
    "30 fuzzing": [
        "doors/test_fuzz.py: every_route_answers_as_the_document_says",
        "doors/ahp/test_bad_input.py: fuzzed_commands_and_actions",
        "workspace/test_jail.py: any_text_is_answered",
    ],
    "31 what is judged is what is shown is what runs": [
        "agents/test_hostile_actions.py: a_command_that_does_more_than_its_first_words_asks_and_shows_it",
        "agents/test_hostile_actions.py: a_permission_for_more_than_it_says_asks",
        "host/test_action.py: a_command_is_shown_as_it_runs, a_permission_is_for_the_same_action",
    ],
    "32 what always asks stands above every grant": [
        "host/test_action.py: what_must_always_ask_is_let_pass_by_nobody, a_grant_covers_what_was_shown",
        "doors/test_always_asks.py: a_session_that_lets_everything_pass, whoever_says_more_than_yes",
    ],
    "33 scopes by effect": [
        "doors/test_effects.py: what_one_scope_can_do, what_scopes_can_do_together",
        "doors/test_loosening.py: rest, ahp",
        "host/test_autonomy.py: the_host_refuses_and_audits",
    ],
    "34 one place that authorises": [
        "host/test_do.py: no_command_passes_without_its_scope, a_guard_stands_before_every_command_on_every_way",
        "doors/test_rules.py: no_door_checks_a_scope, every_route_that_changes_something_is_a_command",
    ],
    "35 a cookie is worth nothing to another server": [
        "doors/test_gate.py: a_cookie_alone_opens_the_pages_and_nothing_else",
        "../web/browser/hostile.test.ts: gets the cookie with the first click, and can do nothing with it",
    ],
    "36 cursors name their log, events have a checksum": [
        "doors/test_cursors.py: a_cursor_of_another_log_is_refused, an_editor_gets_a_snapshot",
        "log/test_checksum.py: a_damaged_event_is_one_gap_for_every_reader, an_index_that_lies_shows_no_event_twice",
        "log/test_damage.py: damaged_files, missing_and_swapped_files, two_missing_files",
        "maintenance/test_repair.py: damage_in_any_column_is_found_and_repaired",
        "maintenance/test_repair.py: a_host_serves_everything_with_a_damaged_channel",
        "doors/test_damaged_home.py: what_is_served_of_a_damaged_folder_is_right_or_named",
    ],
    "37 every writer has a budget": [
        "host/test_bounds.py: a_turn_that_talks_for_ever_is_cut_with_a_notice, a_tool_that_prints_for_ever_is_cut",
        "host/test_bounds.py: a_terminal_that_prints_for_ever_does_not_fill_the_disk, a_full_disk_begins_no_turn",
        "host/test_bounds.py: a_session_over_its_bound_takes_no_messages",
        "terminals/test_terminals.py: of_terminals_without_a_session_the_last_few_are_kept",
    ],
    "38 foreign text is escaped for its place": [
        "test_markdown.py: every_payload_is_shown_as_it_is",
        "jobs/test_draw.py: hostile_and_long_names_are_escaped_and_cut",
        "workspace/test_escapes.py: what_cannot_be_seen_is_spelled_out",
    ],
    "39 a session belongs to a person": [
        "doors/test_rights.py: what_a_role_can_do",
        "doors/test_ownership.py: a_command_that_names_anothers_session_besides",
    ],
    "40 what starts by itself": [
        "automation/test_hook.py: a_delivery_runs_once, orders_in_a_payload_stay_quoted, bounds",
        "automation/test_hook.py: a_flood_is_told_to_come_again",
    ],
    "41 an exhausted limit blocks the next start": [
        "budgets/test_start.py: every_kind_of_agent_waits_in_every_scope, every_bound_holds_the_next_turn",
        "budgets/test_start.py: parallel_sessions_share_one_question_and_its_answer",
        "budgets/test_start.py: a_turn_that_waits_to_start_waits_again_after_a_restart",
        "budgets/test_start.py: the_question_moves_on_when_its_turn_is_cancelled",
        "budgets/test_start.py: the_question_outlives_its_turn_and_is_answered_without_one",
        "budgets/test_start.py: no_way_starts_a_turn_while_the_budget_is_exhausted",
        "live/test_budgets.py: copilot_waits_for_the_answer",
        "budgets/test_turn_and_children.py: a_turn_waits_within_itself_at_every_bound",
        "budgets/test_turn_and_children.py: no_sub_agent_works_while_the_budget_is_exhausted",
        "budgets/test_turn_and_children.py: what_a_sub_agent_spends_holds_its_parent",
    ],
    "43 a person's text is stored in what belongs to that person": [
        "projects/test_projects.py: a_persons_messages_are_stored_in_their_own_conversation",
        "projects/test_projects.py: of_people_only_an_admin_adds_and_forgets_projects",
        "doors/test_ownership.py: a_message_to_a_project_is_found_by_its_person_only",
    ],
    "45 handlers that read, await and write hold a lock": [
        "test_locks.py: every_command_with_a_handler_has_a_case, a_failed_read_loses_nothing",
        "test_locks.py: two_concurrent_commands_leave_what_one_after_the_other_leaves",
    ],
    "46 logout, revoke, removal, deletion and cancel are final": [
        "doors/test_web.py: a_logout_ends_the_cookie_the_key_and_what_they_hold_open",
        "notices/test_push.py: a_subscription_ends_with_its_token",
        "doors/test_deletion.py: a_deleted_session_is_in_no_file_of_the_home, a_reader_in_the_way_only_delays_it",
        "notices/test_notices.py: a_deleted_session_is_quoted_in_no_notice",
        "notices/test_push.py: a_host_ends_the_subscriptions_of_a_token_within_a_second",
    ],
    "47 a hash, a name or an id in a text grants no access": [
        "doors/test_ownership.py: a_hash_in_a_text_opens_no_blob",
        "doors/test_ownership.py: an_archive_that_names_a_blob_without_its_content_opens_none",
    ],
    "42 a call that cannot be judged is covered by a grant for the identical call only": [
        "host/test_action.py: an_unclear_call_is_covered_by_a_grant_for_the_identical_call_only",
        "host/test_action.py: a_refusal_also_covers_unknown_fields",
        "agents/test_hostile_actions.py: a_remembered_approval_covers_no_unknown_field",
        "queries/test_activity.py: a_long_command_does_not_hide_that_it_cannot_be_judged",
        "agents/loop/test_call_forms.py: a_field_with_a_meaning_is_rejected_and_nothing_runs",
        "agents/loop/test_call_forms.py: the_call_of_another_agent_is_judged_shown_and_run_as_ours",
    ],
    "44 cached facts expire and are checked again": [
        "agents/test_cached_facts.py: signed_out_of_an_acp_agent, list_test_and_doctor_agree, a_failed_check",
        "agents/test_cached_facts.py: a_rejected_key_of_an_endpoint, a_rejected_key_of_copilot",
        "agents/test_cached_facts.py: an_endpoint_without_tools, an_agent_that_works_in_one_folder",
        "jobs/test_away.py: a_note_decides_nothing, a_job_waits_asks_and_goes_on",
        "jobs/test_away.py: a_job_that_a_restart_resumes_does_not_fail_by_a_note",
    ],
    "48 a failing listener affects only itself": ["host/test_commits.py: a_receiver_that_raises_affects_only_itself"],
    "49 an answer matches an option or is rejected": [
        "host/test_question.py: an_option_is_named_by_id_or_label",
        "budgets/test_start.py: an_answer_matches_the_id_or_the_label, any_other_answer_is_rejected_with_the_options",
    ],
    "50 agents that do not ask": [
        "agents/test_asking.py: a_refused_write_tells_whether_an_agent_asks, every_verb_names_an_agent_that_never_asks",
        "agents/test_asking.py: such_an_agent_needs_approve_to_start, every_client_of_the_session_shows_it",
        "live/test_asking.py: opencode_asks_for_everything_but_reads_in_the_folder",
        "live/test_asking.py: an_agent_derived_from_a_known_one_is_found_not_to_ask",
    ],
    "51 the smallest set of MCP tools, and answers only by name": [
        "doors/mcp/test_offers.py: no_credential_has_these_tools_unless_it_names_them",
        "doors/mcp/test_offers.py: a_misled_model_with_the_hosts_token",
        "doors/mcp/test_offers.py: a_named_tool_is_the_only_one_more, the_guide_lists_every_tool_with_its_scope",
        "cli/test_config.py: the_line_that_doctor_prints_gives_a_model_no_more_than_read_and_drive",
    ],
    "52 nothing runs without the sandbox that it needs": [
        "sandboxes/test_choice.py: nothing_runs_unconfined_where_the_sandbox_does_not_work, what_is_refused",
        "sandbox/test_starts.py: every_process_is_started_with_a_policy",
        "sandboxes/test_escapes.py: from_a_command_of_a_person, from_a_command_of_an_agent, from_a_check_of_a_job",
        "sandboxes/test_escapes.py: from_the_process_of_an_agent, the_attempts_succeed_without_a_sandbox",
    ],
}


@cache
def _names(file: str) -> str:
    return (ROOT / "tests" / file).read_text()


def _holds(file: str, test: str) -> bool:
    if file.endswith(".ts"):
        return f'test("{test}' in _names(file)
    return re.search(rf"^(async )?def test_{test}\(", _names(file), re.MULTILINE) is not None


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_has_its_tests(promise: str) -> None:
    for place in PROMISES[promise]:
        file, _, tests = place.partition(": ")
        missing = [each for each in ([tests] if file.endswith(".ts") else tests.split(", ")) if not _holds(file, each)]
        assert missing == [], file
