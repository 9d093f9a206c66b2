import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { root } from './bundles.ts';

/** A run of Mocha's API with one test that leaves a rejected promise behind; prints the number of failures. */
const RUN = (install: string) => `
  import Mocha from 'mocha';
  import { failOnUnhandledRejections } from './test/support/unhandled-rejections.ts';
  ${install}
  const mocha = new Mocha({ reporter: 'min' });
  mocha.suite.addTest(new Mocha.Test('leaves a rejection', async () => {
    void Promise.reject(new Error('left behind'));
    await new Promise((resolve) => setImmediate(resolve));
  }));
  mocha.run((failures) => console.log('failures:', failures));
`;

describe('a rejected promise of a test', () => {
  const play = (install: string) => {
    const args = ['--import', 'tsx', '--input-type=module', '--eval', RUN(install)];
    return spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' }).stdout;
  };

  it('fails the test', () => assert.match(play('failOnUnhandledRejections();'), /failures: [12]/));

  it('would pass with Mocha’s API alone', () => assert.match(play(''), /failures: 0/));
});
