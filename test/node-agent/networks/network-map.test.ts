import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { NetworkMapError } from '../../../model/networks/network-map.ts';
import { hasNodeSelectors, parseNetworkMapText, readNetworkMap } from '../../../node-agent/networks/map-source.ts';
import { tempDirectories } from '../support.ts';

describe('the file of the network map', () => {
  const temp = tempDirectories();

  it('may be empty, and may have entries for nodes with a label', () => {
    assert.deepEqual(parseNetworkMapText('map.yaml', ''), []);
    const selected = parseNetworkMapText('map.yaml', '- {nodeSelector: {rack: a}, tunnel: {numaNodes: [0]}}');
    assert.equal(hasNodeSelectors(selected), true);
    assert.equal(hasNodeSelectors(parseNetworkMapText('map.yaml', 'tunnel: {numaNodes: [0]}')), false);
  });

  const wrong: [string, string, RegExp][] = [['broken YAML', 'physnets: {', /map.yaml: not YAML/]];
  for (const [what, text, message] of wrong) {
    it(`refuses ${what}`, () =>
      assert.throws(
        () => parseNetworkMapText('map.yaml', text),
        (error) => error instanceof NetworkMapError && message.test(error.message),
      ));
  }

  for (const [what, spoil] of [
    ['a pipe', (file: string) => execFileSync('mkfifo', [file])],
    ['a huge file', (file: string) => writeFileSync(file, '#'.repeat(1024 * 1024))],
    ['an overlong name', (file: string) => writeFileSync(file, `{physnets: {${'x'.repeat(5000)}: {numaNodes: [-1]}}}`)],
    ['an overlong alias', (file: string) => writeFileSync(file, `a: *${'x'.repeat(5000)}`)],
  ] as const) {
    it(`gives a short error without blocking for a network map that is ${what}`, () => {
      const file = `${temp()}/map.yaml`;
      spoil(file);
      assert.throws(
        () => readNetworkMap(file),
        (error) => error instanceof NetworkMapError && error.message.length < 700,
      );
    });
  }
});
