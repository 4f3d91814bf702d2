package face

import (
	"cmp"
	"fmt"

	"swarmdeck/engine/cluster"
	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/files"
	"swarmdeck/engine/host"
	"swarmdeck/engine/tools"
)

func wall() []*Face {
	return []*Face{
		Of[egress.Rule]{
			ID:      "HOST",
			Columns: "HOST,60 RULE REQUESTS,50 FOR LEFT,right PRIVATE:private OWNER:owner",
			Wide:    "HOSTS:hosts",
			Cells: Cells[egress.Rule]{
				"HOST": func(r *egress.Rule, _ At) string { return r.Where() },
				"RULE": func(r *egress.Rule, at At) string { return r.State(at.Now) },
				"REQUESTS": func(r *egress.Rule, _ At) string {
					if r.Opaque {
						return "unread"
					}
					return r.What()
				},
				"FOR":  func(r *egress.Rule, _ At) string { return cmp.Or(r.Whom(), "everybody") },
				"LEFT": func(r *egress.Rule, at At) string { return at.Left(r.ExpiresAt) },
			},
		}.Face(),
		Of[files.Rule]{
			ID:      "path",
			Columns: "PATH:path,60 RULE:effect FOR OWNER:owner",
			Wide:    "AGE:updated_at,age",
			Cells: Cells[files.Rule]{
				"FOR": func(r *files.Rule, _ At) string { return cmp.Or(r.Whom(), "everybody") },
			},
		}.Face(),
		Of[host.Status]{
			Noun: "host", ID: "name", Says: hostSays,
			Columns: "HOST:name STATE FOR:since,age AGENTS SYSTEM:system ADDRESS,60 REASON:reason,80",
			Wide:    "LEASE:lease_s,s LABELS:labels LACKS:lacks",
			Cells: Cells[host.Status]{
				"STATE":   func(h *host.Status, _ At) string { return h.Word() },
				"AGENTS":  func(h *host.Status, _ At) string { return fmt.Sprintf("%d of %d", len(h.Agents), h.Slots) },
				"ADDRESS": func(h *host.Status, _ At) string { return h.Way() },
			},
		}.Face(),
		Of[cluster.Engine]{
			Noun: "engine", ID: "name",
			List:    "ENGINE:14*2km STATE:12 HERE:4/5 COUNT:5 TENANTS:12*4/1 ADDRESS:12*2/2 VERSION:8*1/4 AGE:4/6",
			Columns: "ENGINE:name STATE:state SEEN:silent_ms,ms HERE:here COUNT:tenant_count TENANTS:tenants,60 ADDRESS:address,60 VERSION:version AGE:started_at,age",
			Wide:    "HOST:host",
		}.Face(),
		Of[tools.Server]{
			Noun: "server", ID: "name",
			Columns: "SERVER:name AGE:created_at,age PROFILE WHAT,60",
			Wide:    "DIR:dir",
			Cells: Cells[tools.Server]{
				"PROFILE": func(s *tools.Server, _ At) string {
					switch {
					case s.URL != "":
						return ""
					case s.Profile == "open":
						return "OPEN"
					}
					return cmp.Or(s.Profile, "worker")
				},
				"WHAT": func(s *tools.Server, _ At) string { return core.Join(s.Command) + s.URL },
			},
		}.Face(),
		Of[tools.Tool]{
			Noun: "tool", ID: "name", Head: "description",
			Columns: "SERVER:server TOOL:name DESCRIPTION:description,60",
		}.Face(),
	}
}
