package ca_test

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/drivers/cell/ca"
	"swarmdeck/expect"
)

func TestACellTrustsItsOwnAuthorityOnly(t *testing.T) {
	made := func() (*ca.Authority, *x509.CertPool) {
		a := expect.Of(ca.New())(t)
		pool := x509.NewCertPool()
		expect.Must(t, pool.AppendCertsFromPEM(a.Certificate()), "no certificate")
		return a, pool
	}
	a, trusted := made()
	_, other := made()
	for host, wrong := range map[string]string{"api.example": "example", "127.0.0.1": "127.0.0.2", "::1": "api.example"} {
		c := expect.Of(a.Leaf(host))(t)
		again, _ := a.Leaf(host)
		expect.True(t, again == c, "it is kept")
		expect.Of(c.Leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: host}))(t)
		expect.Fails(t, expect.Fault(c.Leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: wrong})), "a certificate for", host, "is good for", wrong)
		expect.Fails(t, expect.Fault(c.Leaf.Verify(x509.VerifyOptions{Roots: other, DNSName: host})), "another cell trusts it")
		expect.True(t, time.Until(c.Leaf.NotAfter) <= 25*time.Hour && !c.Leaf.IsCA, "%v %v", c.Leaf.NotAfter, c.Leaf.IsCA)
	}
	for i := range 600 {
		expect.Of(a.Leaf(fmt.Sprintf("h%d.example", i)))(t)
	}
}

func TestTheBundleHoldsWhatTheMachineTrusts(t *testing.T) {
	a := expect.Of(ca.New())(t)
	b := expect.Of(ca.New())(t)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	whole := b.Certificate()
	if err := os.WriteFile(roots, whole[:len(whole)-1], 0o600); err != nil { // without its last line break
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", roots)
	got, want := string(a.Bundle()), string(whole)+string(a.Certificate())
	expect.True(t, got == want, "%s\nis not\n%s", got, want)
}
