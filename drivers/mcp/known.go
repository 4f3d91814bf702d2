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
	"swarmdeck/engine/tools"
)

// definitions remembers what servers said last about their tools, over restarts
// of the engine too: an approval is bound to the tool as it was when a person
// was asked, and a tool with another schema or description is another one.
type definitions struct {
	state string // directory of the files

	mu sync.Mutex
	by map[string]definition // by tenant and server
}

// definition is what one server's tools are.
type definition struct {
	Server  string            `json:"server"`  // digest of the record
	Schemas map[string]string `json:"schemas"` // digest of all that it says of it, by tool
}

func (d *definitions) path(tenant, server string) string {
	return filepath.Join(d.state, tenant, server+".tools")
}

// digest names a tool of a server as it is now: another command or address of
// the server, another schema, description or annotation gives another one. One that was never listed
// has a digest too.
func (d *definitions) digest(s tools.Server, tool string) string {
	known := d.of(s.TenantID, s.Name)
	schema := ""
	if known.Server == s.Digest() {
		schema = known.Schemas[tool]
	}
	return sum(s.Digest() + "\n" + schema)
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

func (d *definitions) of(tenant, server string) definition {
	key := tenant + "/" + server
	d.mu.Lock()
	defer d.mu.Unlock()
	known, seen := d.by[key]
	if !seen {
		if data, err := os.ReadFile(d.path(tenant, server)); err == nil {
			_ = core.DecodeStored(data, &known) // what can't be read was never listed
		}
		d.keep(key, known)
	}
	return known
}

func (d *definitions) keep(key string, known definition) {
	if d.by == nil {
		d.by = map[string]definition{}
	}
	d.by[key] = known
}

// learn takes in what a server says of its tools now.
func (d *definitions) learn(s tools.Server, list []tools.Tool) error {
	now := definition{Server: s.Digest(), Schemas: make(map[string]string, len(list))}
	for _, t := range list {
		now.Schemas[t.Name] = t.Digest
	}
	was := d.of(s.TenantID, s.Name)
	if was.Server == now.Server && maps.Equal(was.Schemas, now.Schemas) {
		return nil
	}
	data, err := core.Encode(now)
	if err != nil {
		return fmt.Errorf("encode the tools of server %s: %w", s.Name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keep(s.TenantID+"/"+s.Name, now)
	path := d.path(s.TenantID, s.Name)
	err = os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("remember the tools of server %s: %w", s.Name, err)
	}
	return nil
}
