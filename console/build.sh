#!/usr/bin/env bash
# Rebuilds the console. It needs Node.js 20 or newer and npm; the result is committed, so that
# nobody else does. All versions are exact, so the same sources give the same files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
npm install --no-package-lock --no-audit --no-fund --loglevel=error
node build.mjs
