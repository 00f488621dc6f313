-- +goose Up
SELECT 1;
