import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { parseNetworkMap } from '../../model/networks/network-map.ts';
import { tempDirectories } from '../support/files.ts';

const MAIN = new URL('../../cli/main.ts', import.meta.url).pathname;

describe('plumbline import nova-conf', function () {
  this.timeout(300_000);
  const temp = tempDirectories();
  let directory: string;
  const file = (name: string, content: string | Buffer) => {
    writeFileSync(join(directory, name), content);
    return join(directory, name);
  };
  const plumbline = (...args: string[]) =>
    spawnSync(process.execPath, ['--import', 'tsx', MAIN, 'import', 'nova-conf', ...args], { encoding: 'utf8' });

  before(() => {
    directory = temp();
    file('10-networks.conf', '[neutron]\nphysnets = physnet0\n[neutron_physnet_physnet0]\nnuma_nodes = 0\n');
    file('20-here.conf', '[neutron_physnet_physnet0]\nnuma_nodes = 1\n[compute]\ncpu_dedicated_set = 2-15,^8\n');
  });

  it('prints the ConfigMap that the agents mount, from a directory, in the order of files', () => {
    const { status, stdout, stderr } = plumbline(directory, '--cpus', '0-15', '--node-selector', 'rack=a');
    assert.deepEqual([status, stderr], [0, '']);
    const { kind, metadata, data } = parse(stdout);
    assert.deepEqual([kind, metadata], ['ConfigMap', { name: 'plumbline-network-map', namespace: 'plumbline-system' }]);
    assert.deepEqual(parseNetworkMap(parse(data['networks.yaml'])), [
      { nodeSelector: { rack: 'a' }, physnets: { physnet0: { numaNodes: [1] } } },
    ]);
    assert.match(stdout, /^# reservedSystemCPUs: "0-1,8"$/m);
  });

  it('prints only the entries with --map-only, or data', () => {
    assert.deepEqual(parse(plumbline(directory, '--map-only').stdout), [
      { physnets: { physnet0: { numaNodes: [1] } } },
    ]);
    assert.deepEqual(JSON.parse(plumbline(directory, '-o', 'json').stdout), {
      networkMap: [{ physnets: { physnet0: { numaNodes: [1] } } }],
      cpus: { dedicated: '2-7,9-15' },
      warnings: [],
    });
  });

  it('warns on standard error and exits with 0', () => {
    const { status, stderr } = plumbline(file('lone.ini', '[neutron]\nphysnets = x\n'));
    assert.equal(status, 0);
    assert.match(stderr, /^warning: physnet x has no \[neutron_physnet_x\] numa_nodes/);
  });

  it('reads a pipe', () => {
    const input = '[neutron_tunnel]\nnuma_nodes = 1\n';
    const args = ['--import', 'tsx', MAIN, 'import', 'nova-conf', '--map-only', '/dev/stdin'];
    const { stdout } = spawnSync('bash', ['-c', `cat | "$0" "$@"`, process.execPath, ...args], {
      encoding: 'utf8',
      input,
    });
    assert.deepEqual(parse(stdout), [{ tunnel: { numaNodes: [1] } }]);
  });

  const wrong: readonly (readonly [name: string, args: () => string[], line: RegExp])[] = [
    ['a missing file', () => [join(directory, 'gone')], /cannot read .*gone: ENOENT/],
    ['text that is not UTF-8', () => [file('b.ini', Buffer.from([0x5b, 0xff, 0x5d]))], /is not UTF-8 text/],
    [
      'files that are too large together',
      () => ['e.ini', 'f.ini'].map((name) => file(name, '#\n'.repeat(2_097_152 / 3))),
      /f\.ini: the files have more than 2097152 bytes together/,
    ],
    ['a file without an end', () => ['/dev/zero'], /cannot read \/dev\/zero: it is larger than 2097152 bytes/],
    ['a missing argument', () => [], /missing required argument 'files'/],
    ['an invalid selector', () => [directory, '--node-selector', 'rack'], /expected label=value/],
  ];
  for (const [name, args, line] of wrong) {
    it(`refuses ${name} in one line`, () => {
      const { status, stdout, stderr } = plumbline(...args());
      assert.deepEqual([stdout, stderr.trimEnd().split('\n').length], ['', 1]);
      assert.match(stderr, line);
      assert.equal(status, 2);
    });
  }
});
