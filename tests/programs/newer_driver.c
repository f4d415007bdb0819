/* What a driver newer than the table has more: linked into a stand-in of its own. */
int cuBrandNew(int *answer)
{
    *answer = 42;
    return 0;
}
