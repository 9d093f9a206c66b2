import assert from 'node:assert/strict';
import { parseCheckpoint } from '../../../node-agent/assignments/checkpoint.ts';

const V2 =
  '{"policyName":"static","defaultCpuSet":"0-1,6-7","entries":{"uid-b":{"c":"4-5"},"uid-a":{"y":"3","x":"2"}},"checksum":1}';

/** A file of version 4: its content is JSON in a text. */
function v4(data: object, top: object = {}): string {
  const content = { policyName: 'static', defaultCpuSet: '0', ...data };
  return JSON.stringify({ data: JSON.stringify(content), dataChecksum: 7, ...top });
}

describe('cpu_manager_state', () => {
  it('v2: reads entries by pod uid and container, in ascending order', () => {
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
    ['v3, the whole pod', '{"policyName":"static","defaultCpuSet":"0","podEntries":{"u":{"cpuSet":"1-2"}}}', 'u/=1-2'],
    ['v3, another case', '{"policyName":"static","defaultCpuSet":"0","podEntries":{"u":{"cpuset":"1"}}}', 'u/=1'],
    ['v3, plain', '{"policyName":"static","defaultCpuSet":"0","podEntries":{"u":"1"}}', 'u/=1'],
    [
      'v3, pod and containers',
      '{"policyName":"static","defaultCpuSet":"0","entries":{"u":{"c":"1"}},"podEntries":{"u":"1-2"}}',
      'u/=1-2 u/c=1',
    ],
    ['v4, without data', '{"policyName":"static","defaultCpuSet":"0","data":"","entries":{"u":{"c":"1"}}}', 'u/c=1'],
    ['v4, containers', v4({ entries: { u: { c: '1' } } }), 'u/c=1'],
    ['v4, the whole pod', v4({ podEntries: { u: { cpuSet: '1-4' } }, entries: { u: { c: '1-2' } } }), 'u/=1-4 u/c=1-2'],
    [
      'v4, with the baselines of resizes',
      v4({ entries: { u: { c: '1-4' } }, baselines: { u: { c: { baseline: '1-2' } } } }),
      'u/c=1-4',
    ],
    ['v4, null instead of no entries', v4({ entries: null, podEntries: null, baselines: null }), ''],
    [
      'v4, whose data replace what an older kubelet would read',
      v4({ entries: { u: { c: '1' } } }, { policyName: 'static', defaultCpuSet: '0-1', entries: {} }),
      'u/c=1',
    ],
    ['an unknown number or plain text', v4({ generation: 3, note: 'x' }, { dataChecksum: 5, note: 'y' }), ''],
  ];
  for (const [name, text, expected] of forms) {
    it(name, () => {
      const displayed = parseCheckpoint(text).entries.map(
        ({ podUID, container, cpus }) => `${podUID}/${container}=${cpus}`,
      );
      assert.equal(displayed.join(' '), expected);
    });
  }

  it('refuses more containers than a report can name, before it reads any CPU set', () => {
    const file = (count: number, cpus: string) => {
      const many = Array.from({ length: count }, (_, i) => [`u${i}`, { c: cpus }]);
      return JSON.stringify({ policyName: 'static', defaultCpuSet: '0', entries: Object.fromEntries(many) });
    };
    assert.throws(() => parseCheckpoint(file(2049, 'none')), /2049 containers with CPUs; the agent reads at most 2048/);
    assert.equal(parseCheckpoint(file(2048, '8191')).entries.length, 2048);
  });

  const state = (more: object) => JSON.stringify({ policyName: 'static', defaultCpuSet: '0', ...more });
  const wrong: [string, string, RegExp][] = [
    ['nothing', '', /^torn: it is empty$/],
    ['one character', '{', /^torn: its 1 characters are not complete JSON$/],
    ['a number', '1', /^unknown format at the top: expected object, received number$/],
    ['a missing policy', '{"defaultCpuSet":"0-3"}', /policyName/],
    ['a missing shared pool', '{"policyName":"static"}', /defaultCpuSet/],
    ['an invalid pool', '{"policyName":"static","defaultCpuSet":"all"}', /defaultCpuSet/],
    ['v1, keyed by container id', state({ entries: { abc: '1-2' } }), /at entries.abc: it has no containers$/],
    ['a list of containers', state({ entries: { u: ['1'] } }), /at entries.u: it has no containers$/],
    ['a container without a CPU set', state({ entries: { u: { c: 1 } } }), /at entries.u.c: not a CPU set$/],
    ['an invalid CPU list', state({ entries: { u: { c: '1-x' } } }), /entries.u.c/],
    ['a pod without a CPU set', state({ podEntries: { u: { mem: '1' } } }), /at podEntries.u: it has no CPU set$/],
    [
      'owners in a field of a later version',
      state({ podSets: { u: { cpuSet: '1-2' } } }),
      /^unknown format at podSets: a field of a later version of the kubelet$/,
    ],
    ['v4, an incomplete text', JSON.stringify({ data: '{"policyName":"static"' }), /^torn: its 22 characters/],
    ['v4, a text without content', JSON.stringify({ data: '{}' }), /^unknown format at data\.policyName: /],
    ['v4, a text that is no object', JSON.stringify({ data: '[]' }), /^unknown format at data: /],
    ['v4, owners in a field of a later version', v4({ shared: [['u', '1-2']] }), /^unknown format at data\.shared: /],
    ['v4, a second text with owners', v4({}, { more: '{"entries":{}}' }), /^unknown format at more: /],
  ];
  for (const [what, text, message] of wrong) {
    it(`refuses ${what}, with place and reason`, () =>
      assert.throws(() => parseCheckpoint(text), { name: 'CheckpointError', code: 'checkpoint', message }));
  }
});
