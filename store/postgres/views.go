package postgres

import "strings"

// The views for people with SQL are part of the layout: a change of them is a step of
// its own at its end. They show the engine's records, whose names and shapes the
// engine decides; the store decodes them only here. A member that a record lacks is
// null. The checksums are not looked at: store check does that.

// viewsSQL makes the views beside the tables. A record is JSON behind its checksum.
// Text in SQL has no zero byte: it becomes U+FFFD there. A tenant that is elsewhere
// is not shown.
func viewsSQL() string {
	sql := `create function swarmdeck_json(record bytea) returns json language sql immutable strict parallel safe as $$
	select (case when position('\u0000' in told) = 0 then told
		else regexp_replace(told, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') end)::json
	from (select convert_from(substr(record, 5), 'UTF8') as told) as record
$$;
`
	for _, v := range []struct{ name, bucket, first, columns string }{
		{"tasks", "task", "record.*", `task_id text, trace_id text, parent_task_id text, session_id text, kind text,
	title text, status text, waiting text, priority int, attempt int, max_attempts int, agent text, worker text, approval_id text,
	decision_id text, error_code text, retry_of text, created_by text, created_kind text, created_at timestamptz, updated_at timestamptz,
	started_at timestamptz, completed_at timestamptz, run_at timestamptz`},
		{
			"approvals", "approval", `record.*, swarmdeck_json(kv.value) #>> '{action,kind}' as kind, swarmdeck_json(kv.value) #>> '{agent,name}' as agent`,
			`approval_id text, trace_id text, task_id text, session_id text, status text, gate text, intent text, risk text, reason_code text,
	rationale text, rule_id text, policy_version text, digest text, attempt int, requested_by text, requested_kind text, answered_by text,
	answered_for text, answer_reason text, abort boolean, self_approved boolean, void_reason text, decision_id text, created_at timestamptz,
	deadline_at timestamptz, shown_at timestamptz, escalated_at timestamptz, answered_at timestamptz, voided_at timestamptz, used_at timestamptz`,
		},
		{
			"decisions", "decision", `'gd_' || left(encode(sha256(owner.tenant), 'hex'), 5) || '_' || lpad(swarmdeck_json(kv.value) ->> 'n', greatest(10, length(swarmdeck_json(kv.value) ->> 'n')), '0') as decision_id,
	coalesce(swarmdeck_json(kv.value) ->> 'decided_by', 'policy') as decided_by, record.*`,
			`trace_id text, task_id text, approval_id text, session_id text, decision text, reason_code text, gate text,
	rule_id text, agent text, kind text, door text, digest text, prior_digest text, abort boolean, self_approved boolean, unsandboxed boolean,
	created_at timestamptz, shown_at timestamptz`,
		},
		{
			"audit", "audit", `record.*, swarmdeck_json(kv.value) #>> '{payload,subject}' as subject, swarmdeck_json(kv.value) #>> '{payload,id}' as id`,
			`seq bigint, event_id text, trace_id text, event_type text, created_at timestamptz, actor text, actor_kind text, door text,
	prev bigint, payload json`,
		},
	} {
		sql += strings.NewReplacer("NAME", v.name, "BUCKET", v.bucket, "FIRST", v.first, "COLUMNS", v.columns).Replace(`create view swarmdeck_NAME as
select convert_from(owner.tenant, 'UTF8') as tenant_id, FIRST, swarmdeck_json(kv.value) as record
from owner join kv on kv.tenant = owner.tenant and kv.bucket = 'BUCKET', json_to_record(swarmdeck_json(kv.value)) as record(COLUMNS)
where owner.away = '';
`)
	}
	return sql
}
