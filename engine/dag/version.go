package dag

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Version is what an event stated about a node.
type Version struct {
	Node    Node   `json:"node"`
	EventID string `json:"event_id"`
	TS      Time   `json:"ts"`
	Pos     uint64 `json:"pos"`
}

// newest is a node's newest version; nil when it was never stated.
func (r reader) newest(ref NodeRef) (*Version, error) {
	num, _, err := r.num(nameKey(ref))
	if err != nil || num == 0 {
		return nil, err
	}
	return r.version(num, ^uint64(0))
}

// version is a node's newest version among the events before a pos.
func (r reader) version(num, before uint64) (*Version, error) {
	var v *Version
	err := r.versions(num, before, func(found *Version) (bool, error) {
		v = found
		return false, nil
	})
	return v, err
}

// versionAt is the version that held at a time.
func (r reader) versionAt(num uint64, at time.Time) (*Version, error) {
	const most = 1000 // versions looked at
	var v *Version
	n := 0
	err := r.versions(num, ^uint64(0), func(found *Version) (bool, error) {
		to := found.Node.Valid.To
		if !found.Node.Valid.start(found.TS).After(at) && (to.IsZero() || to.at.After(at)) {
			v = found
			return false, nil
		}
		n++
		return n < most, nil
	})
	return v, err
}

// versions calls fn for a node's versions among the events before a pos, the
// newest first.
func (r reader) versions(num, before uint64, fn func(*Version) (bool, error)) error {
	return stated.Within(r, record.Seq(num), nil, record.Seq(before), true, func(rest record.Parts, found record.Found[[]byte]) (bool, error) {
		pos, i := rest.Seq(), placeOf(found)
		e, err := r.event(pos)
		if err != nil {
			return false, err
		}
		if i >= len(e.Event.Nodes) {
			return false, core.Errorf(core.Internal, "event %d states no node %d", pos, i)
		}
		return fn(&Version{e.Event.Nodes[i], e.Event.EventID, e.Event.TS, pos})
	})
}

// placeOf is where a version stands within its event's nodes.
func placeOf(found record.Found[[]byte]) int {
	at := record.Parts(found.Data)
	return int(at.Short())
}

// maxVersions bounds what Node returns.
const maxVersions = 100

// NodeInfo is what is known of a node.
type NodeInfo struct {
	Type     NodeType  `json:"type"`
	ID       string    `json:"id"`
	Versions []Version `json:"versions,omitempty"` // the newest 100, newest first
}

// Node finds a node that some event names.
func (d *DAG) Node(ctx context.Context, tenant string, ref NodeRef) (NodeInfo, error) {
	info := NodeInfo{Type: ref.Type, ID: ref.ID}
	f := &problems{}
	if ref.check(f, "node"); len(f.all) > 0 {
		return info, f.err()
	}
	err := d.view(ctx, tenant, "read a node", func(r reader) error {
		num, err := r.named(ref)
		if err != nil {
			return err
		}
		return r.versions(num, ^uint64(0), func(v *Version) (bool, error) {
			info.Versions = append(info.Versions, *v)
			return len(info.Versions) < maxVersions, nil
		})
	})
	return info, audit.Explain(fmt.Sprintf("read %s", ref), err)
}
