package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"swarmdeck/store"
)

// step leads from one layout of the tables to the next.
type step struct {
	sql string
	// alone says that programs that don't know it can't work beside it: it is not taken
	// while one of their engines is there, and what they have is no longer theirs.
	alone bool
}

// layouts are the steps from an empty database to the tables that this package
// knows. The list grows at its end only; the table layout says how many were
// taken. A step after which programs that don't know it can go on is best: engines are
// upgraded one after another. Names and keys are bytes, whose order is that of the keys.
//
// The table kv is one: parted by hash of tenant, 8 to 32 ways, each commit took the
// server 8 to 20 % more processor time, with one tenant as with sixteen. Who parts it
// must know that commits and clearings remove rows by ctid, which each part counts anew.
func layouts() []step {
	return []step{
		{sql: `
create table kv (
	tenant bytea not null,
	bucket bytea not null,
	key    bytea not null,
	value  bytea not null, -- checksum and value
	primary key (tenant, bucket, key)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1);
create table owner (
	tenant  bytea primary key,
	engine  text not null default '',             -- who has it
	epoch   bigint not null default 0,            -- fencing token
	session bigint not null default 0,            -- raised when a commit's outcome is asked for
	commit  bigint not null default 0,            -- number of the last commit
	schema  bigint not null,                      -- migrations that it has been through
	until   timestamptz not null default '-infinity' -- end of the lease
) with (fillfactor = 50);`},
		{sql: `alter table owner add column away text not null default '' -- why the tenant is not here, see store.AwayError`},
		{sql: `
create table engine (
	name    text primary key,
	address text not null, -- of its SSH door
	key     text not null, -- that the door proves
	host    text not null,
	version text not null,
	since   timestamptz not null default clock_timestamp(),
	seen    timestamptz not null default clock_timestamp(),
	until   timestamptz not null -- it is live
) with (fillfactor = 50);`},
		{sql: viewsSQL()},
		{sql: `alter table engine add column signer text not null default '' -- public key that it signs the log with`},
		{sql: `
alter table layout add column least int not null default 0; -- the layout that a program has to know to go on beside it
alter table engine add column layout int not null default 0; -- that it knows`},
		{sql: committerSQL},
		{sql: `
alter table engine add column draining boolean not null default false; -- it is stopped, and hands its tenants over`},
	}
}

// layoutLock is the advisory lock under which the tables are made.
const layoutLock = 0x73776b76

// noPrivilege is PostgreSQL's code of an error for want of a privilege.
const noPrivilege = "42501"

// layOut makes the tables that are missing.
func (db *DB) layOut(ctx context.Context) error {
	steps := db.steps
	var have int
	ready := func(q interface {
		QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	},
	) error {
		var there bool
		// The table pg_class is read for what is there now: what another has just made the
		// function alone does not see.
		if err := q.QueryRow(ctx, "select exists (select from pg_catalog.pg_class where oid = to_regclass('layout'))").Scan(&there); err != nil || !there {
			return err
		}
		err := q.QueryRow(ctx, "select coalesce(max(version), 0) from layout").Scan(&have)
		if told := new(pgconn.PgError); errors.As(err, &told) && told.Code == noPrivilege {
			err = fmt.Errorf("the role lacks SELECT on table layout: %w", err)
		}
		return err
	}
	if err := ready(db.pool); err != nil {
		return db.fault(inOneLine(err))
	}
	if !db.opt.ReadOnly {
		if err := db.mayWrite(ctx); err != nil {
			return err
		}
	}
	switch {
	case have == len(steps):
		return db.mayUse(ctx)
	case have > len(steps):
		var least int
		if err := db.pool.QueryRow(ctx, "select max(least) from layout").Scan(&least); err != nil {
			return db.fault(inOneLine(err))
		}
		if err := db.knows(int64(least)); err != nil {
			return err
		}
		return db.mayUse(ctx)
	case db.opt.ReadOnly:
		return db.fault(fmt.Errorf("table layout %d is older than this program's %d: the first command that writes brings it there, by a role that owns the tables", have, len(steps)))
	}
	if have == 0 {
		if err := db.mayMake(ctx); err != nil {
			return db.fault(fmt.Errorf("make the tables: %w", err))
		}
	}
	err := pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", layoutLock); err != nil {
			return err
		}
		if err := ready(tx); err != nil { // another may have been faster
			return err
		}
		if have == 0 {
			if _, err := tx.Exec(ctx, "create table if not exists layout (version int primary key)"); err != nil {
				return err
			}
		}
		for i := have; i < len(steps); i++ {
			if err := steps[i].take(ctx, tx, i+1); err != nil {
				return fmt.Errorf("layout %d: %w", i+1, err)
			}
		}
		return nil
	})
	if err != nil {
		return db.fault(fmt.Errorf("make the tables: %w", err))
	}
	return nil
}

// take carries the step out that leads to a layout.
func (s step) take(ctx context.Context, tx pgx.Tx, to int) error {
	if _, err := tx.Conn().PgConn().Exec(ctx, s.sql).ReadAll(); err != nil {
		return err
	}
	if !s.alone {
		_, err := tx.Exec(ctx, "insert into layout (version) values ($1)", to)
		return err
	}
	var there string
	if err := tx.QueryRow(ctx, olderSQL, to).Scan(&there); err != nil {
		return err
	}
	if there != "" {
		return fmt.Errorf("engines of an older version are at work and can't go on beside it; stop them first: %s", there)
	}
	if _, err := tx.Exec(ctx, "insert into layout (version, least) values ($1, $1)", to); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "update owner set epoch = epoch + 1, until = '-infinity'")
	return err
}

// olderSQL names the engines that are there and don't know a layout.
const olderSQL = `select coalesce(string_agg(host || ' (' || version || ')', ', ' order by host), '') from engine where until > clock_timestamp() and layout < $1`

// knows is an error when a program has to know a newer layout than this one does.
func (db *DB) knows(least int64) error {
	if least > int64(len(db.steps)) {
		return db.fault(fmt.Errorf("table layout %d is newer than this program's %d: upgrade the program", least, len(db.steps)))
	}
	return nil
}

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

// missingSQL lists what a role lacks on the tables, by a list of those and of what is
// needed on each, and on the function that writes, where $3 says that it is needed.
const missingSQL = `select current_user, 'table ' || tab, string_agg(upper(need), ', ' order by need)
from unnest($1::text[], $2::text[]) as wanted(tab, need) where not has_table_privilege(tab, need) group by tab
union all select current_user, 'function swarmdeck_commit', 'EXECUTE'
where $3 and not has_function_privilege('swarmdeck_commit'::regproc, 'execute')
order by 2`

// mayUse is an error that names the tables and privileges which the role lacks.
func (db *DB) mayUse(ctx context.Context) error {
	needs := [][2]string{{"kv", "select"}, {"owner", "select"}, {"engine", "select"}}
	if !db.opt.ReadOnly {
		needs = append(needs, [][2]string{{"kv", "insert"}, {"kv", "update"}, {"kv", "delete"}, {"owner", "insert"}, {"owner", "update"}, {"engine", "insert"}, {"engine", "update"}, {"engine", "delete"}}...)
	}
	var tables, privileges []string
	for _, need := range needs {
		tables, privileges = append(tables, need[0]), append(privileges, need[1])
	}
	rows, err := db.pool.Query(ctx, missingSQL, tables, privileges, !db.opt.ReadOnly)
	if err != nil {
		return db.fault(fmt.Errorf("privileges on the tables: %w", err))
	}
	defer rows.Close()
	var role, on, lacks string
	var all []string
	for rows.Next() {
		if err := rows.Scan(&role, &on, &lacks); err != nil {
			return err
		}
		all = append(all, lacks+" on "+on)
	}
	if err := rows.Err(); err != nil || len(all) == 0 {
		return err
	}
	return db.fault(fmt.Errorf("role %s lacks %s", role, strings.Join(all, "; ")))
}

// mayMake is an error that says why the role can't make the tables, which it finds in
// no schema.
func (db *DB) mayMake(ctx context.Context) error {
	var role, path, schema string
	var may bool
	err := db.pool.QueryRow(ctx, `select current_user, current_setting('search_path'), coalesce(current_schema(), ''),
	coalesce(has_schema_privilege(current_schema(), 'create'), false)`).Scan(&role, &path, &schema, &may)
	switch {
	case err != nil:
	case schema == "":
		err = fmt.Errorf("role %s has no schema: none of search_path (%s) exists and gives it USAGE", role, path)
	case !may:
		err = fmt.Errorf("role %s lacks CREATE on schema %s, and in search_path (%s) it sees no tables made by another", role, schema, path)
	}
	return err
}

// mayWrite is an error that says so where the server only gives records to read.
func (db *DB) mayWrite(ctx context.Context) error {
	var standby, refuses bool
	err := db.pool.QueryRow(ctx, "select pg_is_in_recovery(), current_setting('transaction_read_only')::bool").Scan(&standby, &refuses)
	switch {
	case err != nil:
		return err
	case standby:
		return fmt.Errorf("database %s is a standby: %w", db.Name(), store.ErrStandby)
	case refuses:
		return fmt.Errorf("database %s has default_transaction_read_only: %w", db.Name(), store.ErrStandby)
	}
	return nil
}
