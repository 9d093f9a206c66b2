import assert from 'node:assert/strict';
import { parseDatapaths } from '../../../node-agent/open-vswitch/datapath-counters.ts';

const names = (...lines: string[]) => parseDatapaths(lines.join('\n')).map(({ datapath }) => datapath);

describe('lines of dpctl/show', () => {
  it('have a datapath’s name alone on a line: kind, @, name and colon', () => {
    assert.deepEqual(names('system@ovs-system:', 'netdev@ovs-netdev:', 'a@b:'), [
      'system@ovs-system',
      'netdev@ovs-netdev',
      'a@b',
    ]);
    assert.deepEqual(names('@b:', 'a@:', 'ab:', ':', '@:', 'a@b', ' a@b:', 'a@b: ', 'port 1: a@b:'), []);
  });

  it('have up to eight datapaths with names of up to 63 characters', () => {
    const longest = `a@${'b'.repeat(61)}`;
    assert.deepEqual(names(`${longest}:`, `${longest}b:`), [longest]);
    const many = Array.from({ length: 12 }, (_, i) => `a@${i}:`);
    assert.deepEqual(names(...many), ['a@0', 'a@1', 'a@2', 'a@3', 'a@4', 'a@5', 'a@6', 'a@7']);
  });

  it('have numbers for each datapath, and the sum of its ports’ drops', () => {
    const text = [
      '  lookups: hit:1 missed:9 lost:9',
      'a@b:',
      '  lookups: hit:30 missed:4 lost:5',
      '  flows: 6',
      '  port 0: x',
      '    RX packets:1 errors:0 dropped:7 overruns:0',
      '    TX packets:1 errors:0 dropped:8 aborted:0',
      '    RX packets:1 errors:0 dropped:10 overruns:0',
      '    TX packets:1 errors:0 dropped:? aborted:0',
      '    RX bytes:1 dropped:100',
      'c@d:',
      '  lookups: hit:1 missed:? lost:0',
      '  flows:',
      '    TX packets:1 dropped:2',
    ].join('\n');
    assert.deepEqual(parseDatapaths(text), [
      { datapath: 'a@b', upcalls: 4, lost: 5, flows: 6, dropped: { rx: 17, tx: 8 } },
      { datapath: 'c@d', upcalls: undefined, lost: 0, flows: undefined, dropped: { rx: 0, tx: 2 } },
    ]);
  });

  it('have numbers of up to fifteen digits from 0 to 9', () => {
    const flows = (text: string) => parseDatapaths(`a@b:\n  flows:${text}`)[0]?.flows;
    assert.equal(flows(' 0123456789'), 123456789);
    assert.equal(flows('12'), 12);
    assert.equal(flows('  12'), undefined);
    assert.equal(flows(' /1'), undefined);
    assert.equal(flows(' :1'), undefined);
    assert.equal(flows(' 5:'), 5);
    assert.equal(flows(' 5/'), 5);
    assert.equal(flows(` ${'9'.repeat(20)}`), 999_999_999_999_999);
  });
});
