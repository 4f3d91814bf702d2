package egress_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/cell/ca"
	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// packages is a registry of npm that has every package.
func packages(w http.ResponseWriter, r *http.Request) {
	name, file, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/-/")
	var tgz bytes.Buffer
	zip := gzip.NewWriter(&tgz)
	pack := tar.NewWriter(zip)
	body := fmt.Sprintf(`{"name":%q,"version":"1.0.0"}`, name)
	err := pack.WriteHeader(&tar.Header{Name: "package/package.json", Mode: 0o644, Size: int64(len(body))})
	if err == nil {
		_, err = pack.Write([]byte(body))
	}
	if err != nil || pack.Close() != nil || zip.Close() != nil {
		http.Error(w, "no package", http.StatusInternalServerError)
		return
	}
	if file != "" {
		_, _ = w.Write(tgz.Bytes()) // npm sees whether it has all
		return
	}
	fmt.Fprintf(w, `{"name":%q,"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":%q,"version":"1.0.0","dist":{"tarball":"https://%s/%s/-/p.tgz","shasum":"%x"}}}}`,
		name, name, r.Host, name, sha1.Sum(tgz.Bytes()))
}

// TestNPMInstallsThirtyPackagesWithOneQuestion has a real npm, whose packages lie on two
// hosts: with a preset nobody is asked, without one a person once.
func TestNPMInstallsThirtyPackagesWithOneQuestion(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("there is no npm")
	}
	no := func(err error) {
		t.Helper()
		expect.No(t, err)
	}
	authority, err := ca.New()
	no(err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(packages))
	server.TLS = &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(h.ServerName) }}
	server.StartTLS()
	t.Cleanup(server.Close)

	eng, alice := realEngine(t)
	w := newWorld(t, eng.Egress, local(server.Listener.Addr().String()))
	trust := filepath.Join(t.TempDir(), "trust.pem")
	no(os.WriteFile(trust, authority.Bundle(), 0o600))
	for _, host := range []string{"registry.npmjs.org", "registry.yarnpkg.com"} {
		w.names.of[host] = []string{"8.8.8.8"}
	}
	var wants []string
	for i := range 15 {
		wants = append(wants, fmt.Sprintf(`"near-%d":"1.0.0","@far/%d":"1.0.0"`, i, i))
	}
	dir := t.TempDir()
	no(os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name":"app","dependencies":{`+strings.Join(wants, ",")+`}}`), 0o600))
	no(os.WriteFile(filepath.Join(dir, ".npmrc"), []byte("@far:registry=https://registry.yarnpkg.com/\n"), 0o600))
	install := func() {
		t.Helper()
		no(os.RemoveAll(filepath.Join(dir, "node_modules")))
		cmd := exec.CommandContext(t.Context(), npm, "install", "--no-audit", "--no-fund", "--no-update-notifier")
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "npm_config_cafile=" + trust, "HTTPS_PROXY=http://" + w.http}
		out, err := cmd.CombinedOutput()
		expect.Must(t, err == nil, "%v\n%s", err, out)
		for _, pattern := range []string{"near-*", "@far/*"} {
			all, _ := filepath.Glob(filepath.Join(dir, "node_modules", pattern, "package.json"))
			expect.True(t, len(all) == 15, "%s: %d are installed", pattern, len(all))
		}
	}
	asked := func(status string) []judge.Approval {
		page, err := eng.Judge.Approvals(t.Context(), ada.Tenant, core.Filter{Status: status})
		no(err)
		return page.Items
	}

	rule, err := egress.NewRule(egress.Allow, "npm")
	no(err)
	_, _, err = eng.Egress.Put(t.Context(), alice, rule, 0)
	no(err)
	install()
	expect.Is(t, len(asked("")), 0, "with a preset questions")

	_, err = eng.Egress.Remove(t.Context(), alice, rule.ID())
	no(err)
	bell := eng.Watch(t.Context())
	answered := make(chan error, 1)
	go func() { // once both are wanted, which the lock file that is there by now names
		for {
			open, err := eng.Judge.Open(context.Background(), ada.Tenant)
			if err == nil && len(open) == 1 && len(open[0].Subject.Hosts) == 2 {
				_, err = eng.Judge.Answer(context.Background(), alice, open[0].ApprovalID, judge.Answer{Approve: true})
				answered <- err
				return
			}
			select {
			case <-bell:
			case <-t.Context().Done():
				answered <- err
				return
			}
		}
	}()
	install()
	no(<-answered)
	if all := asked("approved"); len(all) != 1 || all[0].Subject.Headline != "connect to registry.npmjs.org:443, registry.yarnpkg.com:443 for ada" &&
		all[0].Subject.Headline != "connect to registry.yarnpkg.com:443, registry.npmjs.org:443 for ada" {
		t.Errorf("without one: %+v", all)
	}
	expect.True(t, len(asked("open")) == 0 && len(asked("denied")) == 0, "more is asked")
	no(w.proxy.Close())
}
