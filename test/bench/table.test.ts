import { equal, match } from 'node:assert/strict';
import { goalsFor, reasonsFor } from '../../bench/table.ts';

const row = (name: string, bound: string) =>
  `| \`${name}\` | 0.82 | 0.78 to 0.97 | ${bound} | pods a second | 2, 20.20.2 |`;

describe('bench/table', () => {
  it('gives the reason of each bound that was not met', () => {
    const text = reasonsFor([
      row('kube-scheduler.default-profile-every-pod-over-echo-extender', '**>= 0.9**'),
      row('native.gate-added-over-delegate', '<= 10'),
      row('new.measurement', '**<= 1**'),
    ]);
    match(
      text,
      /^\n## Bounds that were not met\n\n- `kube-scheduler\.default-profile-every-pod[^`]*`: as for launchers/,
    );
    match(text, /- `new\.measurement`: the reason is not known yet\.\n$/);
    equal(text.includes('gate-added'), false);
  });

  it('states the goals that are not reached, for figures that should be low and that should be high', () => {
    const figure = (name: string, ratio: string) => row(name, '<= 1').replace('0.82', ratio);
    const text = goalsFor([
      figure('node-agent.resident-megabytes', '70.01'),
      figure('webhook.reviews-over-pepr', '3.99'),
      figure('cli.explain-1000-nodes-over-bare-node', '4.00'),
      figure('native.gate-added-over-delegate', '99.00'),
    ]);
    match(
      text,
      /^\n## Goals that are not reached\n\n- `node-agent\.resident-megabytes`: 70\.01, goal `<= 70`\. The reason: /,
    );
    match(text, /\n- `webhook\.reviews-over-pepr`: 3\.99, goal `>= 4`\./);
    equal(text.trim().split('\n').length, 4);
    equal(goalsFor([figure('webhook.reviews-over-pepr', '4.00')]), '');
  });
});
