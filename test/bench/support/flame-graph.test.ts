import assert from 'node:assert/strict';
import { flameGraph, framesOf } from '../../../bench/support/flame-graph.ts';

const node = (id: number, functionName: string, children: readonly number[] = []) => ({
  id,
  callFrame: { functionName, url: '' },
  children,
});

describe('a flame graph', () => {
  const nodes = [
    node(1, '(root)', [2, 5, 6]),
    node(2, 'serve', [3, 4]),
    node(3, 'decide'),
    node(4, ''),
    node(5, '(idle)'),
    node(6, 'serve', [7]),
    node(7, 'decide'),
  ];
  // Each sample lasts until the next one.
  const profile = { nodes, samples: [3, 4, 5, 7, 2], timeDeltas: [0, 300, 100, 5000, 500, 100] };

  it('adds up calls of the same name under the same callers, and omits idle time', () => {
    const all = framesOf(profile);
    const serve = all.children.get('serve');
    assert.deepEqual([all.total, serve?.total, all.children.size], [1000, 1000, 1]);
    assert.equal(serve?.children.get('decide')?.total, 800);
    assert.equal(serve?.children.get('(anonymous)')?.total, 100);
  });

  it('draws a frame as wide as its share, with its name and percentage, and omits frames that are too narrow', () => {
    const svg = flameGraph(framesOf(profile), 'a < b');
    assert.match(svg, /<title>a &lt; b<\/title>/);
    assert.match(svg, /<title>decide 80\.0 %<\/title><rect class="s\d" x="0\.0" y="64" width="959\.5"/);
    assert.match(svg, /prefers-color-scheme: dark/);
    const narrow = { nodes, samples: [3, 4], timeDeltas: [0, 10_000, 10] };
    assert.doesNotMatch(flameGraph(framesOf(narrow), ''), /anonymous/);
  });
});
