package mcp

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/op"
)

// Bounds of a file of tokens.
const (
	maxTokenFile = 256 << 10
	minToken     = 16 // characters
	maxToken     = 512
)

// Tokens are the bearer tokens that are good, and whose they are. Only their
// sha256 is kept.
type Tokens struct {
	mu    sync.RWMutex
	known []knownToken
}

type knownToken struct {
	sum [sha256.Size]byte
	id  Identity
}

// LoadTokens reads a file of tokens, YAML or JSON:
//
//	tokens:
//	  - {operator: alice, role: operator, tenant: t_lab, sha256: 9f86d0…}
//	  - {agent: Sony, tenant: t_lab, token: at-least-16-characters}
//
// The role is viewer or operator; agents have none. tenant may be left out
// where the caller names one. Each token is given as it is, or by its sha256 in
// hex, which keeps it out of the file.
func LoadTokens(path string, data []byte, tenant string) (*Tokens, error) {
	r := document.NewReader(path)
	root, ok := r.Parse(data, maxTokenFile)
	if !ok {
		return nil, r.Err()
	}
	t := &Tokens{}
	r.Object(root, map[string]func(document.Value){
		"tokens": func(v document.Value) {
			document.Each(r, v, func(v document.Value) struct{} {
				t.read(r, v, tenant)
				return struct{}{}
			})
		},
	}, "tokens")
	if err := r.Err(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Tokens) read(r *document.Reader, v document.Value, tenant string) {
	id := Identity{Tenant: tenant}
	var token, sum string
	lines := r.Object(v, map[string]func(document.Value){
		"operator": func(v document.Value) { id.Kind, id.Name = core.Operator, r.Word(v) },
		"agent":    func(v document.Value) { id.Kind, id.Name = core.Agent, r.Word(v) },
		"role":     func(v document.Value) { id.Role = op.Role(r.Word(v)) },
		"tenant":   func(v document.Value) { id.Tenant = r.Word(v) },
		"token": func(v document.Value) {
			if token = r.Word(v); len(token) < minToken || len(token) > maxToken {
				r.Fail(v, "want %d-%d characters", minToken, maxToken)
			}
		},
		"sha256": func(v document.Value) {
			if sum, _ = r.String(v); len(sum) != 2*sha256.Size {
				r.Fail(v, "want the sha256 of the token as %d hex digits", 2*sha256.Size)
			}
		},
	})
	if lines == nil {
		return
	}
	if (lines["operator"] != 0) == (lines["agent"] != 0) {
		r.Fail(v, "want either operator or agent")
		return
	}
	id.Far = id.Kind == core.Operator // a token does not say where who has it sits
	if id.Kind == core.Agent && id.Role != "" {
		r.Fail(v.Field("role"), "agents have none")
		return
	}
	if (token != "") == (sum != "") {
		r.Fail(v, "want either token or sha256")
		return
	}
	r.Check(v, id.Check())
	k := knownToken{id: id}
	if token != "" {
		k.sum = sha256.Sum256([]byte(token))
	} else if n, err := hex.Decode(k.sum[:], []byte(sum)); err != nil || n != len(k.sum) {
		r.Fail(v.Field("sha256"), "want hex digits")
	}
	for _, other := range t.known {
		if other.sum == k.sum {
			r.Fail(v, "the token is already %s's", other.id.Name)
		}
	}
	t.known = append(t.known, k)
}

// Issue makes a token for an identity, in the place of the one it was issued
// before.
func (t *Tokens) Issue(id Identity) (string, error) {
	if err := id.Check(); err != nil {
		return "", err
	}
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	token := base64.RawURLEncoding.EncodeToString(b[:])
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := sha256.Sum256([]byte(token))
	for i := range t.known {
		if t.known[i].id == id {
			t.known[i].sum = sum
			return token, nil
		}
	}
	t.known = append(t.known, knownToken{sum, id})
	return token, nil
}

// find tells whose a token is. It takes as long for every token.
func (t *Tokens) find(token string) (id Identity, ok bool) {
	sum := sha256.Sum256([]byte(token))
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i := range t.known {
		if subtle.ConstantTimeCompare(sum[:], t.known[i].sum[:]) == 1 {
			id, ok = t.known[i].id, true
		}
	}
	return id, ok
}

// Tenants are those that some token is for, sorted.
func (t *Tokens) Tenants() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := core.Map(t.known, func(k knownToken) string { return k.id.Tenant })
	slices.Sort(all)
	return slices.Compact(all)
}
