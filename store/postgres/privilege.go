package postgres

import (
	"context"
	"fmt"
	"strings"

	"swarmdeck/store"
)

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
