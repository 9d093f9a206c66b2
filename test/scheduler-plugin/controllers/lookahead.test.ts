import assert from 'node:assert/strict';
import { refuse } from '../../../model/placement/verdict.ts';
import { Lookahead } from '../../../scheduler-plugin/controllers/lookahead.ts';
import type { NodeVerdicts } from '../../../scheduler-plugin/filter/node-verdicts.ts';
import { silent } from '../../support/logger.ts';
import { until } from '../../support/until.ts';
import { podOf, reader, withUid } from '../extender-fixture.ts';

describe('predictions between the calls of a pod', () => {
  for (const nodes of [['n1'], ['n1', 'n2', 'n3', 'n4'], ['n1', 'n2', 'n3', 'n4', 'n5']])
    it(`are made from both ends of the order of the filter, ${nodes.length} nodes, the emptiest first`, async () => {
      const predicted: string[] = [];
      const verdict: NodeVerdicts['verdict'] = (_, node) => {
        predicted.push(node?.name ?? '');
        return refuse('other', 'full');
      };
      const lookahead = new Lookahead({
        fleet: { get: (name) => ({ name }) as never },
        verdicts: { verdict },
        log: silent,
      });
      lookahead.add(reader.read(withUid(podOf('4'), 'a')), nodes);
      await until('the predictions', () => predicted.length === nodes.length);
      const expected = ['n5', 'n1', 'n4', 'n2', 'n3'].filter((name) => nodes.includes(name));
      assert.deepEqual(predicted, nodes.length === 4 ? ['n4', 'n1', 'n3', 'n2'] : expected);
      lookahead.stop();
    });
});
