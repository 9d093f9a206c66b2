import { equal, match } from 'node:assert/strict';
import { reasonsFor } from '../../bench/table.ts';

const row = (name: string, bound: string) =>
  `| \`${name}\` | 0.82 | 0.78 to 0.97 | ${bound} | pods a second | 2 cores |`;

describe('bench/table', () => {
  it('gives the reason of each bound that was not met', () => {
    const text = reasonsFor([
      row('kube-scheduler.default-profile-every-pod-over-echo-extender', '**>= 0.9**'),
      row('model.coarse-fit-over-xor', '<= 10'),
      row('new.measurement', '**<= 1**'),
    ]);
    match(
      text,
      /^\n## Bounds that were not met\n\n- `kube-scheduler\.default-profile-every-pod[^`]*`: as for launchers/,
    );
    match(text, /- `new\.measurement`: the reason is not known yet\.\n$/);
    equal(text.includes('coarse-fit'), false);
  });

  it('has no such section if every bound was met', () => {
    equal(reasonsFor([row('model.coarse-fit-over-xor', '<= 10')]), '');
  });
});
