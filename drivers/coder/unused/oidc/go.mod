module github.com/coreos/go-oidc/v3

go 1.26
