import assert from 'node:assert/strict';
import { TUNNEL_RESOURCE } from '../../../model/names.ts';
import { createKindReader, type ReadReport } from '../../../webhook/cluster/kind-reader.ts';

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
    const reader = createKindReader();
    const read = (i: number) => reader.readRaw(statusOf({ physnets: [{ name: `p${i}`, cells: '0' }] }));
    const [first, second] = [read(0), read(1)];
    for (let i = 2; i < 512; i++) read(i);
    assert.equal(read(0), first);
    const last = read(512);
    assert.equal(read(1), second, 'only the oldest is removed');
    assert.equal(read(512), last);
    assert.notEqual(read(0), first);
  });

  const apart: [string, object][] = [
    ['cells', { cells: [{ id: 1, cpus: '0-7' }] }],
    ['cores', { cores: ['0-3', '4-7'] }],
    ['reserved CPUs', { reserved: '0' }],
    ['policy', { cpuManager: { policy: 'none' } }],
    ['whole cores', { cpuManager: { policy: 'static', options: {} } }],
    ['alignment', { topologyManager: { policy: 'restricted' } }],
    ['physnets', { physnets: [{ name: 'a', cells: '0' }] }],
    ['tunnel', { tunnel: { cells: '0' } }],
    ['pinning', { pinsVMs: false }],
  ];
  for (const [what, more] of apart) {
    it(`have the same ${what}`, () => {
      const reader = createKindReader();
      const plain = reader.readRaw(statusOf());
      assert.notDeepEqual(reader.readRaw(statusOf(more)), plain);
      assert.equal(reader.readRaw(statusOf({ assignments: [] })), plain);
    });
  }

  it('contain the facts of the report', () => {
    const reader = createKindReader();
    const kind = kindIn(reader.readRaw(statusOf({ reserved: '0,4' })));
    assert.deepEqual(
      [kind.threadsPerCore, kind.fullPcpusOnly, kind.alignment, kind.rooms.get(0)],
      [2, true, 'best-effort', 6],
    );
    const other = kindIn(reader.readRaw(statusOf({ cpuManager: { policy: 'static' }, topologyManager: undefined })));
    assert.deepEqual([other.fullPcpusOnly, other.alignment], [false, '']);
    const off = reader.readRaw(statusOf({ cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'false' } } }));
    assert.equal(kindIn(off).fullPcpusOnly, false);
    const report = reader.readRaw(statusOf({ cpuManager: { policy: 'none' }, reserved: '0', pinsVMs: true }));
    assert.ok(!('code' in report));
    assert.equal(report.kind, undefined);
    assert.deepEqual([`${report.maskHost.online}`, `${report.maskHost.usable}`], ['0-7', '1-7']);
    assert.equal(report.maskHost.pinsVMs, true);
    assert.deepEqual([`${report.host.online}`, report.host.threadsPerCore], ['0-7', 2]);
  });

  it('are not read from an impossible report', () => {
    const reader = createKindReader();
    for (const status of [undefined, statusOf({ reserved: 'x' }), statusOf({ cells: [] }), statusOf({ format: 2 })]) {
      assert.ok('code' in reader.readRaw(status), JSON.stringify(status));
    }
    const named = (name: string) => reader.readRaw(statusOf({ physnets: [{ name, cells: '0' }] }));
    assert.ok('code' in named(''));
  });
});

describe('a kind without the networks that no kubelet advertises', () => {
  const [EAST, WEST] = ['physnet.plumbline.dev/east', 'physnet.plumbline.dev/west'];
  const physnets = ['east', 'west'].map((name) => ({ name, cells: '0' }));
  const networksOf = (more: object, advertised: string | undefined) => {
    const reader = createKindReader();
    const kind = kindIn(reader.readRaw(statusOf(more)));
    const narrowed = reader.narrowed(kind, advertised);
    assert.equal(reader.narrowed(kind, advertised), narrowed, 'computed once');
    return {
      same: narrowed === kind,
      names: [...narrowed.networks.physnets.keys()],
      tunnel: narrowed.networks.tunnel?.toString(),
    };
  };
  const cases: [string, object, string | undefined, ReturnType<typeof networksOf>][] = [
    [
      'keeps all if the advertised networks are unknown',
      { physnets },
      undefined,
      { same: true, names: ['east', 'west'], tunnel: undefined },
    ],
    ['keeps one', { physnets }, WEST, { same: false, names: ['west'], tunnel: undefined }],
    [
      'drops a lone physnet',
      { physnets: [{ name: 'east', cells: '0' }] },
      WEST,
      { same: false, names: [], tunnel: undefined },
    ],
    [
      'drops the tunnel only',
      { physnets, tunnel: { cells: '0' } },
      `${EAST} ${WEST}`,
      { same: false, names: ['east', 'west'], tunnel: undefined },
    ],
    [
      'keeps the tunnel and drops a physnet',
      { physnets, tunnel: { cells: '0' } },
      `${EAST} ${TUNNEL_RESOURCE}`,
      { same: false, names: ['east'], tunnel: '0' },
    ],
    ['keeps a lone tunnel', { tunnel: { cells: '0' } }, TUNNEL_RESOURCE, { same: true, names: [], tunnel: '0' }],
  ];
  for (const [what, more, advertised, expected] of cases) {
    it(what, () => assert.deepEqual(networksOf(more, advertised), expected));
  }
});
