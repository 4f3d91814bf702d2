package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/tools"
)

// definitions remembers what servers said last about their tools, over restarts
// of the engine too: an approval is bound to the tool as it was when a person
// was asked, and a tool of which anything else is said is another one.
type definitions struct {
	state string // directory of the files

	mu sync.Mutex
	by map[string]definition // by tenant and server
}

// definition is what one server's tools are.
type definition struct {
	Server string           `json:"server"` // digest of the record
	Tools  map[string]known `json:"tools"`
}

// known is one tool.
type known struct {
	Digest   string `json:"digest"` // of all that the server says of it
	Said     string `json:"said"`   // the same for people
	ReadOnly bool   `json:"read_only,omitzero"`
	Approved string `json:"approved,omitempty"` // the digest that a person approved a call of last
}

// reads reports whether a person knows that it only reads: its server says so, and
// said all the same when a call was approved.
func (k known) reads() bool { return k.ReadOnly && k.Approved == k.Digest }

func (d *definitions) path(tenant, server string) string {
	return filepath.Join(d.state, tenant, server+".tools")
}

// tool is what is known of a tool of a server, and its name as it is now: another
// command or address of the server, another schema, description or annotation gives
// another one. One that was never listed has a name too.
func (d *definitions) tool(s tools.Server, name string) (known, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var k known
	if of := d.of(s); of.Server == s.Digest() {
		k = of.Tools[name]
	}
	return k, k.as(s)
}

func (k known) as(s tools.Server) string {
	h := sha256.Sum256([]byte(s.Digest() + "\n" + k.Digest))
	return hex.EncodeToString(h[:])
}

// of is what is known of a server; its caller has mu.
func (d *definitions) of(s tools.Server) definition {
	key := s.TenantID + "/" + s.Name
	is, seen := d.by[key]
	if !seen {
		if data, err := os.ReadFile(d.path(s.TenantID, s.Name)); err == nil {
			_ = core.DecodeStored(data, &is) // what can't be read was never listed
		}
		d.keep(key, is)
	}
	return is
}

func (d *definitions) keep(key string, is definition) {
	if d.by == nil {
		d.by = map[string]definition{}
	}
	d.by[key] = is
}

// learn takes in what a server says of its tools now.
func (d *definitions) learn(s tools.Server, list []tools.Tool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	was, now := d.of(s), definition{Server: s.Digest(), Tools: make(map[string]known, len(list))}
	for _, t := range list {
		k := known{Digest: t.Digest, Said: t.Said, ReadOnly: t.ReadOnly}
		if was.Server == now.Server {
			k.Approved = was.Tools[t.Name].Approved
		}
		now.Tools[t.Name] = k
	}
	if was.Server == now.Server && maps.Equal(was.Tools, now.Tools) {
		return nil
	}
	return d.write(s, now)
}

// approve takes in that a person approved a call of a tool, by its name as it was then.
func (d *definitions) approve(s tools.Server, name, as string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	is := d.of(s)
	k := is.Tools[name]
	if is.Server != s.Digest() || k.as(s) != as || k.Approved == k.Digest {
		return nil
	}
	k.Approved = k.Digest
	is.Tools = maps.Clone(is.Tools)
	is.Tools[name] = k
	return d.write(s, is)
}

func (d *definitions) write(s tools.Server, is definition) error {
	data, err := core.Encode(is)
	if err != nil {
		return fmt.Errorf("encode the tools of server %s: %w", s.Name, err)
	}
	d.keep(s.TenantID+"/"+s.Name, is)
	path := d.path(s.TenantID, s.Name)
	err = os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = safeopen.Replace(path, data)
	}
	if err != nil {
		return fmt.Errorf("remember the tools of server %s: %w", s.Name, err)
	}
	return nil
}
