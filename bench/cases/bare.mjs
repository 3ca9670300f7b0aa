/** The lower bound: five awaited async functions, without a library. */

const step = async (x) => x + 1;

export function setup() {
  return {
    async run() {
      let x = 0;
      for (let i = 0; i < 5; i++) x = await step(x);
      if (x !== 5) throw new Error(`expected 5, not ${x}`);
    },
  };
}
