/** The least that a durable execution of five steps writes: a record at the start, one for each step, one at the end. */

export const RECORDS = 7;

/**
 * @param put - stores a record, `(execution, position, data)`, and is done once it is durable
 * @returns `run(number)`
 */
export function fiveSteps(put) {
  const step = async (x) => x + 1;
  return async (number) => {
    const execution = `exec_${number}`;
    await put(execution, 0, '{"started":true}');
    let x = 0;
    for (let i = 1; i <= 5; i++) {
      x = await step(x);
      await put(execution, i, `{"x":${x}}`);
    }
    await put(execution, 6, `{"ended":true,"x":${x}}`);
    if (x !== 5) throw new Error(`expected 5, not ${x}`);
  };
}

/** @throws when there are not as many records as there must be, or a last one is not what it must be */
export function checkRecords({ records, right }, executions) {
  if (Number(records) === executions * RECORDS && Number(right) === executions) return;
  throw new Error(`${executions} executions left ${records} records, ${right} of them a right last one`);
}
