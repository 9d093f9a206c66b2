import assert from 'node:assert/strict';
import { TUNNEL_RESOURCE } from '../../../model/names.ts';
import { createKindReader, narrowed, type ReadReport } from '../../../webhook/cluster/kind-reader.ts';

const statusOf = (more: object = {}) => ({
  cells: [{ id: 0, cpus: '0-7' }],
  cores: ['0,4', '1,5', '2,6', '3,7'],
  reserved: '',
  cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
  topologyManager: { policy: 'best-effort' },
  assignments: [],
  ...more,
});
const kindIn = (report: ReadReport) => ('code' in report ? assert.fail(report.message) : report.kind) ?? assert.fail();

describe('kinds that equal nodes share', () => {
  it('are limited to the 512 newest, so that a node with ever new reports cannot fill the memory', () => {
    const readRaw = createKindReader();
    const read = (i: number) => readRaw(statusOf({ physnets: [{ name: `p${i}`, cells: '0' }] }));
    const [first, second] = [read(0), read(1)];
    for (let i = 2; i < 512; i++) read(i);
    assert.equal(read(0), first);
    const last = read(512);
    assert.equal(read(1), second, 'only the oldest is removed');
    assert.equal(read(512), last);
    assert.notEqual(read(0), first);
  });

  const APART: Readonly<Record<string, object>> = {
    cells: { cells: [{ id: 1, cpus: '0-7' }] },
    cores: { cores: ['0-3', '4-7'] },
    'reserved CPUs': { reserved: '0' },
    policy: { cpuManager: { policy: 'none' } },
    'whole cores': { cpuManager: { policy: 'static', options: {} } },
    alignment: { topologyManager: { policy: 'restricted' } },
    physnets: { physnets: [{ name: 'a', cells: '0' }] },
    tunnel: { tunnel: { cells: '0' } },
    pinning: { pinsVMs: false },
  };
  it('have the same facts', () => {
    const readRaw = createKindReader();
    const plain = readRaw(statusOf());
    for (const [what, more] of Object.entries(APART)) assert.notDeepEqual(readRaw(statusOf(more)), plain, what);
    assert.equal(readRaw(statusOf({ assignments: [] })), plain);
  });

  it('contain the facts of the report', () => {
    const readRaw = createKindReader();
    const { threadsPerCore, fullPcpusOnly, alignment, rooms } = kindIn(readRaw(statusOf({ reserved: '0,4' })));
    assert.deepEqual([threadsPerCore, fullPcpusOnly, alignment, rooms.get(0)], [2, true, 'best-effort', 6]);
    const other = kindIn(readRaw(statusOf({ cpuManager: { policy: 'static' }, topologyManager: undefined })));
    assert.deepEqual([other.fullPcpusOnly, other.alignment], [false, '']);
    const off = readRaw(statusOf({ cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'false' } } }));
    assert.equal(kindIn(off).fullPcpusOnly, false);
    const report = readRaw(statusOf({ cpuManager: { policy: 'none' }, reserved: '0', pinsVMs: true }));
    assert.ok(!('code' in report));
    assert.equal(report.kind, undefined);
    assert.deepEqual([`${report.maskHost.online}`, `${report.maskHost.usable}`], ['0-7', '1-7']);
    assert.equal(report.maskHost.pinsVMs, true);
    assert.deepEqual([`${report.host.online}`, report.host.threadsPerCore], ['0-7', 2]);
  });

  it('are not read from an impossible report', () => {
    const readRaw = createKindReader();
    for (const status of [undefined, statusOf({ reserved: 'x' }), statusOf({ cells: [] }), statusOf({ format: 2 })])
      assert.ok('code' in readRaw(status), JSON.stringify(status));
    const named = (name: string) => readRaw(statusOf({ physnets: [{ name, cells: '0' }] }));
    assert.ok('code' in named(''));
  });
});

describe('a kind without the networks that no kubelet advertises', () => {
  const [EAST, WEST] = ['physnet.plumbline.dev/east', 'physnet.plumbline.dev/west'];
  const physnets = ['east', 'west'].map((name) => ({ name, cells: '0' }));
  const cases: [string, object, string[], [boolean, string[], string | undefined]][] = [
    ['keeps one', { physnets }, [WEST], [false, ['west'], undefined]],
    ['drops a lone physnet', { physnets: physnets.slice(0, 1) }, [WEST], [false, [], undefined]],
    ['drops the tunnel only', { physnets, tunnel: { cells: '0' } }, [EAST, WEST], [false, ['east', 'west'], undefined]],
    ['keeps a lone tunnel', { tunnel: { cells: '0' } }, [TUNNEL_RESOURCE], [true, [], '0']],
  ];
  for (const [what, more, advertised, expected] of cases)
    it(what, () => {
      const kind = kindIn(createKindReader()(statusOf(more)));
      const { networks } = narrowed(kind, new Set(advertised));
      const { physnets, tunnel } = networks;
      assert.deepEqual([networks === kind.networks, [...physnets.keys()], tunnel?.toString()], expected);
    });
});
