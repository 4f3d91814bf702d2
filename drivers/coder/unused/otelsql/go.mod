module go.nhat.io/otelsql

go 1.26

require (
	go.opentelemetry.io/otel v1.39.0
	go.opentelemetry.io/otel/trace v1.39.0
)
