import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { CheckpointError, parseCheckpoint } from '../../../node-agent/assignments/checkpoint.ts';

const V2 =
  '{"policyName":"static","defaultCpuSet":"0-1,6-7","entries":{"uid-b":{"c":"4-5"},"uid-a":{"y":"3","x":"2"}},"checksum":1}';

describe('cpu_manager_state', () => {
  it('v2: entries by uid and container, ascending', () => {
    const { policy, defaultCpus, entries, owned } = parseCheckpoint(V2);
    assert.equal(policy, 'static');
    assert.equal(defaultCpus.toString(), '0-1,6-7');
    assert.deepEqual(
      entries.map(({ podUID, container, cpus }) => `${podUID}/${container}=${cpus}`),
      ['uid-a/x=2', 'uid-a/y=3', 'uid-b/c=4-5'],
    );
    assert.equal(owned.toString(), '2-5');
  });

  const forms: [string, string, string][] = [
    ['no entries', '{"policyName":"none","defaultCpuSet":"","checksum":2}', ''],
    ['a container on the shared pool', '{"policyName":"static","defaultCpuSet":"0-3","entries":{"u":{"c":""}}}', ''],
    [
      'v3, a pod as a whole',
      '{"policyName":"static","defaultCpuSet":"0","podEntries":{"u":{"cpuSet":"1-2"}}}',
      'u/=1-2',
    ],
    ['v3, another case', '{"policyName":"static","defaultCpuSet":"0","podEntries":{"u":{"cpuset":"1"}}}', 'u/=1'],
    ['v3, plain', '{"policyName":"static","defaultCpuSet":"0","podEntries":{"u":"1"}}', 'u/=1'],
    [
      'v3, pod and containers',
      '{"policyName":"static","defaultCpuSet":"0","entries":{"u":{"c":"1"}},"podEntries":{"u":"1-2"}}',
      'u/=1-2 u/c=1',
    ],
    [
      'fields of a later version',
      '{"policyName":"static","defaultCpuSet":"0","data":"{}","entries":{"u":{"c":"1"}}}',
      'u/c=1',
    ],
  ];
  for (const [name, text, expected] of forms) {
    it(name, () => {
      const shown = parseCheckpoint(text).entries.map(
        ({ podUID, container, cpus }) => `${podUID}/${container}=${cpus}`,
      );
      assert.equal(shown.join(' '), expected);
    });
  }

  it('more containers than a report can name: refused before any set of CPUs is made, in a short message', () => {
    const { parse } = CpuSet;
    let parsed = 0;
    CpuSet.parse = (text) => {
      parsed++;
      return parse(text);
    };
    try {
      const many = Array.from({ length: 100_000 }, (_, i) => [`u${i}`, { c: '65535' }]);
      const text = JSON.stringify({ policyName: 'static', defaultCpuSet: '0', entries: Object.fromEntries(many) });
      assert.throws(() => parseCheckpoint(text), /100000 containers with CPUs; the agent reads at most 2048/);
      assert.equal(parsed, 0);
      const most = JSON.stringify({
        policyName: 'static',
        defaultCpuSet: '0',
        entries: Object.fromEntries(many.slice(0, 2048)),
      });
      assert.equal(parseCheckpoint(most).entries.length, 2048);
    } finally {
      CpuSet.parse = parse;
    }
  });

  it('a wrong form of kilobytes gives a short message', () => {
    const long = 'x'.repeat(100_000);
    for (const entries of [{ [long]: 1 }, { u: { [long]: 1 } }, { u: { [long]: long } }]) {
      const text = JSON.stringify({ policyName: 'static', defaultCpuSet: '0', entries });
      assert.throws(
        () => parseCheckpoint(text),
        (error) => error instanceof CheckpointError && error.message.length < 400,
      );
    }
  });

  it('cut off anywhere: refused, never read as fewer entries', () => {
    for (let length = 0; length < V2.length; length++) {
      assert.throws(() => parseCheckpoint(V2.slice(0, length)), CheckpointError, `after ${length} characters`);
    }
  });

  const wrong: [string, string, RegExp][] = [
    ['not an object', '[]', /unknown format/],
    ['no policy', '{"defaultCpuSet":"0-3"}', /policyName/],
    ['no shared pool', '{"policyName":"static"}', /defaultCpuSet/],
    ['v1, keyed by container id', '{"policyName":"static","defaultCpuSet":"0","entries":{"abc":"1-2"}}', /entries.abc/],
    ['CPUs that are none', '{"policyName":"static","defaultCpuSet":"0","entries":{"u":{"c":"1-x"}}}', /entries.u.c/],
    ['a pool that is none', '{"policyName":"static","defaultCpuSet":"all"}', /defaultCpuSet/],
    [
      'a pod entry without CPUs',
      '{"policyName":"static","defaultCpuSet":"0","podEntries":{"u":{"mem":"1"}}}',
      /podEntries.u/,
    ],
  ];
  for (const [name, text, message] of wrong) {
    it(`refused: ${name}`, () =>
      assert.throws(
        () => parseCheckpoint(text),
        (error) => error instanceof CheckpointError && message.test(error.message),
      ));
  }
});
