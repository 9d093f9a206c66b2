import { describeRestarts } from './generated.ts';

describe('a thousand objects of each kind with a hostile field', () => describeRestarts(1000));
