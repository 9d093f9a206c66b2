import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildOnce, dist } from '../support/bundles.ts';

/** Packages of features that no daemon uses: parsers of bodies, static files, channelz, exemplars. */
const UNUSED = [
  'body-parser',
  'iconv-lite',
  'qs',
  'send',
  'mime-db',
  '@grpc/proto-loader',
  'protobufjs',
  '@opentelemetry/api',
];
const DAEMONS = ['webhook', 'scheduler-plugin', 'console', 'node-agent', 'device-plugin-worker'];

describe('bundles of the daemons', () => {
  let inputs: Readonly<Record<string, string[]>> = {};
  before(function () {
    this.timeout(60_000);
    buildOnce();
    inputs = JSON.parse(readFileSync(join(dist, 'inputs.json'), 'utf8')) as typeof inputs;
  });

  for (const daemon of DAEMONS) {
    it(`${daemon}: contains no package that it does not use`, () => {
      const files = inputs[`${daemon}.cjs`] ?? [];
      assert.ok(files.length > 0);
      const found = UNUSED.filter((name) => files.some((file) => file.includes(`node_modules/${name}/`)));
      assert.deepEqual(found, []);
    });
  }
});
