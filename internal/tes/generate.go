package tes

//go:generate -command oapi-codegen go tool -modfile=../../tools/go.mod oapi-codegen
//go:generate oapi-codegen -config oapi-codegen.yaml tes-1.1.yaml
